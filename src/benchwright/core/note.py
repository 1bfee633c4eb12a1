"""A Note: one remark about a run, launch, number, comparison or machine, wherever it comes from."""

from __future__ import annotations

import msgspec


class Note(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something a reader of the numbers should know. Notes of the same `text` are shown together, with their evidence."""

    text: str
    evidence: str | None = msgspec.field(default=None, name="figure")  # such as "got 81 % of the CPU time it wanted"
    severity: str = "warning"  # error, warning or info; the doctor's also ok or unknown
    # A keyword that code may decide by: core/conditions.py, analysis/remarks.py.
    kind: str | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        """`text (evidence); remedy`."""
        whole = f"{self.text} ({self.evidence})" if self.evidence else self.text
        return f"{whole}; {self.remedy}" if self.remedy else whole

    def about(self, subject: str) -> Note:
        """The same note with its subject in front: `control: …`."""
        return msgspec.structs.replace(self, text=f"{subject}: {self.text}")
