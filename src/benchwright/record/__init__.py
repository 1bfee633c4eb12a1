"""The recorder: folds the events of a job's stream into a Launch with its Measurements and its verdict.

The stream file is the truth; everything here can be computed again from it.
"""

from benchwright.record.launch import record_launch, record_stream
from benchwright.record.stream_file import append_events, is_complete, read_events, stream_checksum

__all__ = ["append_events", "is_complete", "read_events", "record_launch", "record_stream", "stream_checksum"]
