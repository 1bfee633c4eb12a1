"""Which environment variables are recorded, because they explain performance. docs/reference/secrets.md lists them."""

from __future__ import annotations

import re
from functools import lru_cache

from benchwright.core.secrets import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KEPT = (
    # threads and arithmetic on the CPU
    *("OMP_*", "KMP_*", "GOMP_*", "MKL_*", "OPENBLAS_*", "GOTO_*", "BLIS_*", "VECLIB_*", "NUMEXPR_*", "NUMBA_*"),
    *("ONEDNN_*", "DNNL_*", "RAYON_*", "TBB_*", "ATEN_*", "GOMAXPROCS", "GODEBUG", "JAVA_TOOL_OPTIONS"),
    # accelerators
    *("CUDA_*", "CUBLAS*", "CUDNN_*", "NVIDIA_*", "NVTE_*", "GPU_*", "HIP_*", "HSA_*", "ROCM_*", "ROCR_*", "MIOPEN_*"),
    *("AMD_*", "ZE_*", "ONEAPI_*", "SYCL_*", "HABANA_*", "PT_HPU_*", "NEURON_*", "TPU_*"),
    # several devices and machines
    *("NCCL_*", "RCCL_*", "GLOO_*", "UCX_*", "FI_*", "OMPI_MCA_*", "I_MPI_*", "MPICH_*"),
    *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "RANK", "LOCAL_RANK", "DEEPLEARNING_WORKERS_COUNT"),
    # frameworks
    *(
        "TORCH*",
        "PYTORCH_*",
        "TRITON_*",
        "TF_*",
        "XLA_*",
        "JAX_*",
        "ORT_*",
        "OV_*",
        "TVM_*",
        "IREE_*",
        "MXNET_*",
        "DS_*",
    ),
    *("HF_*", "TRANSFORMERS_*", "TOKENIZERS_*", "ACCELERATE_*", "VLLM_*", "FLASH_ATTENTION_*", "DATA_FD"),
    # the interpreter, the loader and memory
    *("PYTHON*", "MALLOC_*", "GLIBC_TUNABLES", "JEMALLOC_*", "MALLOC_CONF", "TCMALLOC_*", "MIMALLOC_*"),
    *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_BIND_NOW", "DYLD_*", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV"),
    # language, which changes sorting and number formats; where temporary and cached files go
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "XDG_CACHE_HOME"),
)
_OURS = frozenset(["BENCHPROBE_CONFIG", "BENCHWRIGHT_JOB"])  # in the plan anyway, or irrelevant
_BEGINNINGS = tuple(glob[:-1] for glob in KEPT if glob.endswith("*"))
_WHOLE = frozenset(glob for glob in KEPT if not glob.endswith("*"))


def kept_variables(
    environment: Mapping[str, str], *, also: Iterable[str] = (), changed: Iterable[str] = ()
) -> dict[str, str]:
    """The variables that explain performance, match `also` (names or globs) or were `changed` on purpose.

    Sorted, with secrets replaced.
    """
    changed, wanted = set(changed) - _OURS, _matching(tuple(also)) if also else None
    kept = {}
    for name in sorted(environment):
        if name.startswith(_BEGINNINGS) or name in _WHOLE or name in changed or (wanted and wanted.fullmatch(name)):
            kept[name] = environment[name]
    return redact(kept)


@lru_cache(maxsize=16)
def _matching(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(glob).replace(r"\*", ".*").replace(r"\?", ".") for glob in globs), re.DOTALL)
