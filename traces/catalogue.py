"""Public traces: where they lie, how large they are, under which licence, and what to cite.

Addresses are pinned to a commit where a repository has commits. A size or a digest stands here only where its
publisher, or whoever pinned that commit, states it; else it is None and `fetch` tells the digest that it got.
"""

from dataclasses import dataclass

GITHUB = "https://raw.githubusercontent.com"
LFS = "https://media.githubusercontent.com/media"
PWA = "https://www.cs.huji.ac.il/labs/parallel/workload"
PAI = "https://aliopentrace.oss-cn-beijing.aliyuncs.com/v2020GPUTraces"
CC_BY = "CC BY 4.0"
RESEARCH = "no licence named; given for research and study"
CITE_PWA = "no licence named; the archive asks to be named and cited, a log's header may state terms of its own"


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file of a public trace.

    Attributes
    ----------
    name : what it is called, in a mirror too
    url : where it lies
    size : bytes, None = not known
    sha256 : digest of its bytes, in hex; None = not known
    about : its size in words where it is not known to the byte
    holds : of an archive, the files that are taken out of it, by the ends of their paths
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None
    about: str = ""
    holds: tuple[str, ...] = ()

    @property
    def shown_size(self) -> str:
        """Size in words.

        >>> PublicFile("a", "u", 1_055_988_361).shown_size
        '1.06 GB'
        """
        if self.size is None:
            return self.about or "size unknown"
        # decimal units, as publishers state sizes
        for unit, bytes_ in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
            if self.size >= bytes_:
                return f"{self.size / bytes_:.3g} {unit}"
        return f"{self.size} bytes"


@dataclass(frozen=True, slots=True)
class PublicTrace:
    """A public trace.

    Attributes
    ----------
    name : what `jobcast trace fetch` calls it
    what : what it is, in a line
    format : which reader reads it
    files : what is fetched
    home : the page that presents it
    licence : as its publisher names it
    citation : the paper that its publisher asks to cite
    sources : files that the reader takes
    timezone : IANA zone of its times, where they have no offset
    """

    name: str
    what: str
    format: str
    files: tuple[PublicFile, ...]
    home: str
    licence: str
    citation: str
    sources: tuple[str, ...]
    timezone: str | None = None


def _philly() -> PublicTrace:
    wanted = ("cluster_job_log", "cluster_machine_list")
    archive = PublicFile(
        "trace-data.tar.gz",
        f"{LFS}/msr-fiddle/philly-traces/29a1b87fa2d9ed80b83c9e3a37f3a88d382b031d/trace-data.tar.gz",
        1_055_988_361,
        "2037ccf63a725a02be718b0e1aeee6142c90b7f62d0d849295120e9f6ba13d2c",
        holds=wanted,
    )
    return PublicTrace(
        "philly", "Microsoft, 117,325 jobs, August to December 2017", "philly", (archive,),
        "https://github.com/msr-fiddle/philly-traces", CC_BY,
        "Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads, USENIX ATC 2019",
        wanted, "America/Los_Angeles",
    )  # fmt: skip


def _helios() -> PublicTrace:
    clusters = ("Earth", "Saturn", "Uranus", "Venus")
    wanted = tuple(f"{name}/{table}.csv" for name in clusters for table in ("cluster_log", "cluster_gpu_number"))
    archive = PublicFile(
        "data.zip",
        f"{GITHUB}/S-Lab-System-Group/HeliosData/159f0caeec16600b9b6017862952a36aae01c43f/data.zip",
        36_437_672,
        "3d22a5f6c0ae669e2fcbfe4200fa9c48664507bc397c677bad8f085222c032ac",
        holds=wanted,
    )
    return PublicTrace(
        "helios", "SenseTime, 3,362,981 jobs of four clusters, April to September 2020", "helios", (archive,),
        "https://github.com/S-Lab-System-Group/HeliosData", CC_BY,
        "Hu et al., Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters, SC 2021",
        wanted, "Asia/Shanghai",
    )  # fmt: skip


def _pai() -> PublicTrace:
    tables = (
        ("pai_job_table", "5aad7f7caac501136d14ed6a48e40546f825d7b0617a3a4f337e2348fe0a6cb0", "about 60 MiB"),
        ("pai_task_table", "cd1d6dc3215d2a8607ccf6b6dd952b5db776df86926c73259fea7c1499ac40e5", "about 34 MiB"),
        ("pai_group_tag_table", "722fef30b7fb7aa50dabd79155614b5423a9d65cf45a9b26c590d57725423a14", "about 53 MiB"),
    )
    files = tuple(
        PublicFile(f"{name}.tar.gz", f"{PAI}/{name}.tar.gz", None, sha256, about, (f"{name}.csv",))
        for name, sha256, about in tables
    )
    return PublicTrace(
        "pai", "Alibaba PAI, over 6,500 GPUs, July and August 2020", "pai", files,
        "https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020", RESEARCH,
        "Weng et al., MLaaS in the Wild: Workload Analysis and Scheduling in Large-Scale Heterogeneous GPU Clusters, "
        "NSDI 2022",
        tuple(f"{name}.csv" for name, _, _ in tables), "Asia/Shanghai",
    )  # fmt: skip


def _acme() -> PublicTrace:
    base = f"{GITHUB}/InternLM/AcmeTrace/f9fdf591b4876c2875a9e3d28adb1bda8120dfcb/data/job_trace"
    kalos = "7c5a7845da1d66448fa668342e4ecb622fd9a005118080660ec3ad2788d4c9bf"
    files = (
        PublicFile("trace_seren.csv", f"{base}/trace_seren.csv", about="under 109 MB"),
        PublicFile("trace_kalos.csv", f"{base}/trace_kalos.csv", None, kalos, "under 109 MB"),
    )
    return PublicTrace(
        "acme", "Shanghai AI Laboratory, 880,740 jobs of two clusters, March to August 2023", "acme", files,
        "https://github.com/InternLM/AcmeTrace", CC_BY,
        "Hu et al., Characterization of Large Language Model Development in the Datacenter, NSDI 2024",
        tuple(file.name for file in files),
    )  # fmt: skip


def _openb() -> PublicTrace:
    base = f"{GITHUB}/alibaba/clusterdata/50a91c7c74abe3b658188dc78ac1dd302970d40c/cluster-trace-gpu-v2023/csv"
    files = (
        PublicFile(
            "openb_pod_list_default.csv", f"{base}/openb_pod_list_default.csv", 575_468,
            "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
        ),
        PublicFile(
            "openb_node_list_gpu_node.csv", f"{base}/openb_node_list_gpu_node.csv", 42_353,
            "2beca64b4d3dfa342036a34b56a495c6cef9225db836c81f541282cb1df320b5",
        ),
    )  # fmt: skip
    return PublicTrace(
        "openb", "Alibaba, 8,152 pods on 1,213 GPU nodes, 2023", "openb", files,
        "https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023", RESEARCH,
        "Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent, "
        "USENIX ATC 2023",
        tuple(file.name for file in files),
    )  # fmt: skip


def _swf(name: str, folder: str, log: str, what: str) -> PublicTrace:
    file = PublicFile(f"{log}.swf.gz", f"{PWA}/{folder}/{log}.swf.gz", holds=(f"{log}.swf",))
    return PublicTrace(
        f"swf-{name}", f"{what} (CPUs, not GPUs)", "swf", (file,), f"{PWA}/{folder}/", CITE_PWA,
        "Feitelson, Tsafrir, Krakov, Experience with Using the Parallel Workloads Archive, "
        "Journal of Parallel and Distributed Computing 74(10), 2014",
        file.holds,
    )  # fmt: skip


_ALL = (
    _philly(),
    _helios(),
    _pai(),
    _acme(),
    _openb(),
    _swf("ctc-sp2", "l_ctc_sp2", "CTC-SP2-1996-3.1-cln", "Cornell Theory Center, IBM SP2, 1996 to 1997"),
    _swf("kth-sp2", "l_kth_sp2", "KTH-SP2-1996-2.1-cln", "KTH Stockholm, IBM SP2, 1996 to 1997"),
    _swf("sdsc-sp2", "l_sdsc_sp2", "SDSC-SP2-1998-4.2-cln", "San Diego (SDSC), IBM SP2, 1998 to 2000"),
    _swf("sdsc-blue", "l_sdsc_blue", "SDSC-BLUE-2000-4.2-cln", "San Diego (SDSC), Blue Horizon, from 2000"),
    _swf("hpc2n", "l_hpc2n", "HPC2N-2002-2.2-cln", "HPC2N Umea, Linux cluster, 2002 to 2006"),
    _swf("anl-intrepid", "l_anl_int", "ANL-Intrepid-2009-1", "Argonne, Blue Gene/P Intrepid, 2009"),
    _swf("cea-curie", "l_cea_curie", "CEA-Curie-2011-2.1-cln", "CEA Curie, 2011 to 2012"),
    _swf("unilu-gaia", "l_unilu_gaia", "UniLu-Gaia-2014-2", "University of Luxembourg, Gaia, 2014"),
)
CATALOGUE: dict[str, PublicTrace] = {trace.name: trace for trace in _ALL}
"""Public traces by name."""
