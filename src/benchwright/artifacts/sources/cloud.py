"""Files from S3, Google Cloud Storage and Hugging Face, through fsspec: the extra `cloud`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from benchwright.artifacts.sources.download import NotModified, Opened, TemporaryTrouble
from benchwright.core.errors import CannotFetch

_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub"}


class CloudSource:
    """One file. Credentials are those its library finds: environment variables, configuration files."""

    def __init__(self, url: str, name: str) -> None:
        self.shown = url
        self._url, self._name = url, name

    def open(self, start: int, version: str | None, have: str | None) -> Opened:
        files, path = self._file_system()
        try:
            about = files.info(path)
            now = str(about.get("ETag") or about.get("etag") or about.get("blob_id") or about.get("sha") or "") or None
            if have is not None and have == now:
                raise NotModified
            if about.get("type") == "directory":
                raise CannotFetch(
                    f"{self._name}: {self._url} is a folder", remedy="name a file, or an archive with 'unpack'"
                )
            total = about.get("size")
            start = start if start and (version is None or version == now) and start <= (total or start) else 0
            file = files.open(path, "rb", cache_type="readahead", block_size=8 << 20)
            file.seek(start)
        except (NotModified, CannotFetch):
            raise
        except Exception as error:
            raise self._trouble(error) from error

        def read(size: int) -> bytes:
            try:
                return bytes(file.read(size))
            except Exception as error:
                raise self._trouble(error) from error

        return Opened(read, file.close, start, total, now)

    def _file_system(self) -> tuple[Any, str]:
        scheme = urlsplit(self._url).scheme.lower()
        try:
            from fsspec.core import url_to_fs

            found: tuple[Any, str] = url_to_fs(self._url)
        except ImportError as error:
            raise CannotFetch(
                f"{self._name}: {self._url} needs {_PACKAGES.get(scheme, 'fsspec')}, which is not installed",
                remedy="pip install 'benchwright[cloud]'",
            ) from error
        except Exception as error:
            raise self._trouble(error) from error
        return found

    def _trouble(self, error: Exception) -> Exception:
        """Each library raises its own exceptions; for those fsspec promises, another attempt is useless."""
        head = f"{self._name}: cannot fetch {self._url}"
        message = str(error).strip().partition("\n")[0][:200] or type(error).__name__
        if isinstance(error, FileNotFoundError | IsADirectoryError):
            return CannotFetch(f"{head}: there is no such file", remedy="check the location")
        if isinstance(error, PermissionError) or "redentials" in type(error).__name__:
            return CannotFetch(
                f"{head}: access was denied ({message})", remedy="check the location and your credentials"
            )
        return TemporaryTrouble(message)
