"""Folders of Kustomize built: bases through their overlays, what is not here told, circles ended."""

from __future__ import annotations

from gpuledger.audit.documents import documents, objects
from gpuledger.audit.kustomize import Built, built, folder_of, is_kustomization, kustomization_references
from gpuledger.model.findings import Written

POD = "spec: {template: {spec: {hostPID: %s, containers: [{name: exporter, image: 'nv/dcgm-exporter:1'}]}}}"
DAEMONS = f"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: dcgm}}\n{POD % 'false'}\n"
ON = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: dcgm}\nspec: {template: {spec: {hostPID: true}}}\n"
BASE = "resources: [ds.yaml]\n"


def made(**texts: str) -> Built:
    """The texts by path, ``__`` for a slash and ``_`` for the point."""
    read = []
    for name, text in texts.items():
        path = name.replace("__", "/").replace("_", ".")
        read += documents(Written(path=path, text=text))[0]
    return built(read)


def host_pids(came: Built) -> list[tuple[str, str]]:
    return [
        (document.built_by, node.at("spec", "template", "spec", "hostPID").text)
        for document in came.documents
        for node in objects(document)
        if node.at("kind").text == "DaemonSet"
    ]


def test_without_a_kustomization_nothing_changes() -> None:
    """The same documents in the same order."""
    came = made(a_yaml=DAEMONS, b_yaml=ON)
    assert host_pids(came) == [("", "false"), ("", "true")]
    assert not came.looked
    assert not came.unread


def test_a_base_is_judged_through_its_overlays() -> None:
    """Not as it lies there; and once for each overlay, with its own patches."""
    came = made(
        base__kustomization_yaml=BASE,
        base__ds_yaml=DAEMONS,
        on__kustomization_yaml="resources: [../base]\npatches: [{path: p.yaml}]\n",
        on__p_yaml=ON,
        off__kustomization_yaml="bases: [../base]\n",
        alone_yaml=DAEMONS,
    )
    assert host_pids(came) == [("", "false"), ("on/kustomization.yaml", "true"), ("off/kustomization.yaml", "false")]
    assert [(each.verdict, each.where.path) for each in came.looked] == [("patch", "on/p.yaml")]
    assert not came.unread


def test_a_base_alone_is_built_as_it_is() -> None:
    """No overlay is here, so the base is what is applied."""
    assert host_pids(made(kustomization_yaml=BASE, ds_yaml=DAEMONS)) == [("kustomization.yaml", "false")]


def test_a_built_object_keeps_its_place() -> None:
    """Findings point at the manifest, and say who built it."""
    came = made(kustomization_yaml="resources: [x/ds.yaml]\nnamespace: gpu\n", x__ds_yaml=f"\n\n{DAEMONS}")
    (document,) = came.documents
    assert (document.path, document.root.line, document.built_by) == ("x/ds.yaml", 3, "kustomization.yaml")
    assert document.root.at("metadata", "namespace").text == "gpu"


COMPONENT = "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\npatches: [{path: p.yaml}]\n"


def test_a_component_is_laid_over_what_is_there() -> None:
    """It is no build of its own."""
    came = made(
        kustomization_yaml="resources: [ds.yaml]\ncomponents: [c]\n",
        ds_yaml=DAEMONS,
        c__kustomization_yaml=COMPONENT,
        c__p_yaml=ON,
    )
    assert host_pids(came) == [("kustomization.yaml", "true")]


def test_a_component_of_components() -> None:
    """Each laid over what is there, the inner one first; a circle of them ends."""
    outer = COMPONENT.replace("patches: [{path: p.yaml}]", "components: [../c]")
    came = made(
        kustomization_yaml="resources: [ds.yaml]\ncomponents: [o]\n",
        ds_yaml=DAEMONS,
        o__kustomization_yaml=outer,
        c__kustomization_yaml=COMPONENT,
        c__p_yaml=ON,
    )
    assert host_pids(came) == [("kustomization.yaml", "true")]
    circle = COMPONENT.replace("patches: [{path: p.yaml}]", "components: [../o]")
    came = made(
        kustomization_yaml="resources: [ds.yaml]\ncomponents: [o]\n",
        ds_yaml=DAEMONS,
        o__kustomization_yaml=outer,
        c__kustomization_yaml=circle,
    )
    assert any("the component ../o" in problem.message for problem in came.unread)


def test_what_is_not_here_is_told() -> None:
    """With the command that builds it; where it does not speak of GPUs, as a word beside."""
    remote = "https://github.com/NVIDIA/dcgm-exporter//deployment?ref=main"
    came = made(kustomization_yaml=f"resources: ['{remote}']\npatchesStrategicMerge: [p.yaml]\n", p_yaml=ON)
    assert [problem.where for problem in came.unread] == ["kustomization.yaml:1", "kustomization.yaml:1"]
    assert all("kubectl kustomize . | gpuledger audit manifests -" in each.message for each in came.unread)
    assert "DaemonSet dcgm, which is not here" in came.unread[1].message
    other = made(kustomization_yaml="resources: ['https://x/y?ref=1', z.yaml]\n")
    assert (other.unread, other.elsewhere) == ((), ("https://x/y?ref=1", "z.yaml"))


def test_what_is_not_applied_here_is_told() -> None:
    """Replacements may change a setting; a patch that does not apply would stop Kustomize."""
    came = made(kustomization_yaml=f"{BASE}replacements: [{{path: r.yaml}}]\n", ds_yaml=DAEMONS)
    assert "replacements of it are not applied here" in came.unread[0].message
    wrong = "patches: [{target: {kind: DaemonSet}, patch: '[{op: remove, path: /spec/gone}]'}]\n"
    came = made(kustomization_yaml=BASE + wrong, ds_yaml=DAEMONS)
    assert "a patch of dcgm does not apply: there is no gone in it" in came.unread[0].message
    gone = made(kustomization_yaml=f"{BASE}patches: [{{path: p.yaml}}]\n", ds_yaml=DAEMONS)
    assert "the patch p.yaml is not among these texts" in gone.unread[0].message


def test_circles_end() -> None:
    """Two that name each other are no base of anything, and bases of bases have an end."""
    came = made(a__kustomization_yaml="resources: [../a]\n", b__kustomization_yaml="resources: [../a]\n")
    assert "a circle of bases" in came.unread[0].message


def test_many_builds_have_a_bound() -> None:
    """Each level names the one below ten times: 10^9 objects otherwise."""
    levels = {f"l{n}__kustomization_yaml": f"resources: [{', '.join([f'../l{n - 1}'] * 10)}]\n" for n in range(1, 10)}
    came = made(l0__kustomization_yaml=BASE, l0__ds_yaml=DAEMONS, **levels)
    assert any("objects are built" in problem.message for problem in came.unread)


def test_which_files_are_kustomizations() -> None:
    """By name or by kind; Flux' objects of the same kind are none."""
    told = documents(Written(path="d/Kustomization", text=BASE))[0][0]
    flux = documents(Written(path="x.yaml", text="apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"))[
        0
    ][0]
    assert (is_kustomization(told), is_kustomization(flux)) == (True, False)
    assert (folder_of("d/Kustomization"), folder_of("k.yaml")) == ("d", ".")


def test_what_a_text_names_beside_it() -> None:
    """Files and folders, not addresses; other texts name nothing."""
    text = (
        "resources: [../base, 'https://x/y', ds.yaml]\npatches: [{path: p.yaml}, {patch: 'a: b'}]\n"
        "helmCharts: [{name: dcgm-exporter, valuesFile: v.yaml}]\n"
    )
    told = kustomization_references(Written(path="o/kustomization.yaml", text=text))
    assert told == ("base", "o/ds.yaml", "o/p.yaml", "o/v.yaml")
    assert kustomization_references(Written(path="o/x.yaml", text=text)) == ()
