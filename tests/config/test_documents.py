"""Texts to plain documents: YAML 1.2 scalars, lines, and every kind of text that must be refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlock.config import documents, yaml_text
from interlock.config.builder import Builder, Unreadable
from interlock.config.documents import MAX_BYTES, Document, read_document
from interlock.config.loader import load_paths


def read(text: str | bytes, file: str = "a.yaml") -> dict[str, object]:
    document = read_document(file, text if isinstance(text, bytes) else text.encode())
    assert isinstance(document, Document), document
    assert not document.flaws
    return document.value


def complaints(text: str | bytes, file: str = "a.yaml") -> list[str]:
    found = read_document(file, text if isinstance(text, bytes) else text.encode())
    return [str(problem) for problem in (found.problems if isinstance(found, Document) else found)]


@pytest.fixture(params=["libyaml", "python"])
def _both_loaders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(yaml_text, "LOADER", yaml.SafeLoader)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NO", "NO"),
        ("yes", "yes"),
        ("on", "on"),
        ("10:00", "10:00"),
        (":30", ":30"),
        ("2026-03-31", "2026-03-31"),
        ("1_000", "1_000"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-7", -7),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("! 12", "12"),
        ("!!int 12", 12),
        ("!!float 12", 12),
        ("18446744073709551615", 2**64 - 1),
        ("9" * 500, "9" * 500),
        ("2%", "2%"),
        ("-", [None]),
    ],
)
@pytest.mark.usefixtures("_both_loaders")
def test_scalars_mean_what_they_look_like(text: str, value: object) -> None:
    got = read(f"key:\n  {text}\n")["key"]
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["a.yaml:1: the file is empty"]),
        ("# only a comment\n", ["a.yaml:1: the file is empty"]),
        ("---\n", ["a.yaml:1: the file is empty"]),
        ("- a\n", ["a.yaml:1: the file holds a list, not a mapping of keys such as `pipeline:`"]),
        ("a", ["a.yaml:1: the file holds a single value, not a mapping of keys such as `pipeline:`"]),
        ("a: 1\n---\nb: 2\n", ["a.yaml:2: a second document begins here: put each in a file of its own"]),
        ("a: 1\n\na: 2\n", ["a.yaml:3 a: given twice: first on line 1, again on line 3"]),
        ("a:\n  b: {c: 1, c: 2}\n", ["a.yaml:2 a.b.c: given twice: first on line 2, again on line 2"]),
        ("a: 1\n5: x\n", ["a.yaml:2 5: this key is not text: quote it"]),
        ("null: x\n", ["a.yaml:1 null: this key is not text: quote it"]),
        ("a: &a [*a]\n", ["a.yaml:1 a[0]: alias *a stands inside its own anchor: it would never end"]),
        ("a: *b\n", ["a.yaml:1 a: alias *b has no anchor &b before it"]),
        ("a: .inf\n", ["a.yaml:1 a: inf is not a number that JSON has: quote it if it is text"]),
        ("a: 1e999\n", ["a.yaml:1 a: inf is not a number that JSON has: quote it if it is text"]),
        ("a: [1, .NaN]\n", ["a.yaml:1 a[1]: nan is not a number that JSON has: quote it if it is text"]),
        (
            "a: !!python/object:os.system x\n",
            ["a.yaml:1 a: the tag !!python/object:os.system is not read here: remove it"],
        ),
        ("a: !ruby {b: 1}\n", ["a.yaml:1 a: the tag !ruby is not read here: remove it"]),
        ("a: !!set [b]\n", ["a.yaml:1 a: the tag !!set is not read here: remove it"]),
        ("a: !!int x\n", ["a.yaml:1 a: 'x' is not what its tag !!int says: correct one of them"]),
        ("a: !!int true\n", ["a.yaml:1 a: 'true' is not what its tag !!int says: correct one of them"]),
        ("a:\n  <<: 5\n", ["a.yaml:2 a.<<: merges a mapping, or a list of them"]),
        ("? [a]\n: b\n", ["a.yaml:1: a list or mapping cannot be a key: use plain text"]),
        ("a: b\0c", ["a.yaml:1: contains a NUL character: this is not a text file"]),
        (b"a: 1\nb: \xff\n", ["a.yaml:2: not UTF-8: byte 0xff at offset 8; save the file as UTF-8"]),
        ("a: 1\nb: x".encode("utf-16"), ["a.yaml:1: not UTF-8: byte 0xff at offset 0; save the file as UTF-8"]),
    ],
)
@pytest.mark.usefixtures("_both_loaders")
def test_what_is_refused_says_where_and_why(text: str | bytes, expected: list[str]) -> None:
    assert complaints(text) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", 3),
        ("a: 1\n\tb: 2\n", 2),
        ("a: 1\nb: \x07\n", 2),
        ('a: "\n\n', 3),
        ('x: "\\UFFFFFFFF"', 1),
    ],
)
@pytest.mark.usefixtures("_both_loaders")
def test_a_syntax_error_names_its_line(text: str, line: int) -> None:
    (complaint,) = complaints(text)
    assert complaint.startswith(f"a.yaml:{line}: not YAML: ")


def test_a_number_beyond_64_bits_is_not_rounded_silently() -> None:
    assert complaints("a: 18446744073709551616\n") == [
        "a.yaml:1 a: a whole number beyond 64 bits: quote it, rules compare numeric text exactly"
    ]


@pytest.mark.usefixtures("_both_loaders")
def test_an_alias_bomb_is_refused_before_it_goes_off() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert complaints("\n".join(lines)) == [
        "a.yaml:5: holds more than 100000 values once its aliases are expanded: a config is never that large"
    ]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_depth_is_bounded_without_using_the_stack(opening: str) -> None:
    (complaint,) = complaints("key:\n  " + opening * 100_000)
    assert complaint.startswith("a.yaml:2")
    assert "nested deeper than 64 levels" in complaint or "cannot be a key" in complaint


def test_a_huge_file_is_refused() -> None:
    assert "larger than 1048576 bytes" in complaints(b"a: " + b"x" * MAX_BYTES)[0]
    many = complaints("a: [" + "1," * 200_000 + "]")
    assert "more than 100000 values" in many[0]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert read(b"\xef\xbb\xbfa: 1\n") == {"a": 1}


@pytest.mark.usefixtures("_both_loaders")
def test_merge_keys_give_what_the_mapping_does_not_say() -> None:
    text = """\
base: &base {x: 1, y: 2}
more: &more {y: 3, z: 4}
one: {<<: *base, y: 9}
two:
  <<: [*base, *more]
literal: {"<<": 5}
word: &word ready
again: [*word, *word]
"""
    value = read(text)
    assert value["one"] == {"x": 1, "y": 9}
    assert value["two"] == {"x": 1, "y": 2, "z": 4}
    assert value["literal"] == {"<<": 5}
    assert value["again"] == ["ready", "ready"]


def test_lines_are_those_of_keys_and_items() -> None:
    text = """\
a: 1
b:
  - x
  - {c: 1,
     d: 2}
base: &base {p: 1}
e:
  <<: *base
f: *base
"""
    document = read_document("a.yaml", text.encode())
    assert isinstance(document, Document)
    expected: dict[tuple[str | int, ...], int] = {
        (): 1,
        ("a",): 1,
        ("b",): 2,
        ("b", 0): 3,
        ("b", 1): 4,
        ("b", 1, "c"): 4,
        ("b", 1, "d"): 5,
        ("e", "p"): 8,
        ("f",): 9,
    }
    for path, line in expected.items():
        assert document.place(path) == (len(path), line)
    assert document.place(("f", "p")) == (1, 9)
    assert document.place(("nope", "nope")) == (0, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1,\n "a": 2}', ["a.json:2 a: given twice: first on line 1, again on line 2"]),
        ('{"a": 1,\n}', None),
        ('{"a": NaN}', ["a.json:1 a: nan is not a number that JSON has: quote it if it is text"]),
        (
            '{"a": "\\ud800"}',
            ["a.json:1 a: text contains half of a surrogate pair, which is not a character"],
        ),
        (
            '{"a": ' + "9" * 5000 + "}",
            ["a.json:1 a: a whole number beyond 64 bits: quote it, rules compare numeric text exactly"],
        ),
        ("[" * 100_000, ["a.json:1: nested far too deep: a config is never that deep"]),
        ("[" * 100 + "]" * 100, ["a.json:1: nested deeper than 64 levels: a config is never that deep"]),
    ],
)
def test_json_is_as_strict(text: str, expected: list[str] | None) -> None:
    got = complaints(text, "a.json")
    if expected is None:
        assert len(got) == 1
        assert got[0].startswith("a.json:")
        assert "not JSON" in got[0]
    else:
        assert got == expected


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text("abc:#\"'\\{}[]\n é", max_size=5), JSON_VALUES, min_size=1, max_size=4), st.booleans())
def test_json_documents_read_as_json(value: dict[str, Any], indented: bool) -> None:
    text = json.dumps(value, indent=2 if indented else None)
    assert read(text, "a.json") == value


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), JSON_VALUES, min_size=1, max_size=4))
def test_what_pyyaml_writes_with_tags_reads_back(value: dict[str, Any]) -> None:
    text = yaml.safe_dump(value, default_style='"', allow_unicode=False)
    assert read(text) == value


@given(st.binary(max_size=400))
def test_random_bytes_never_raise(data: bytes) -> None:
    for file in ("a.yaml", "a.json"):
        read_document(file, data)


@given(st.text("ab:-?[]{},&*!|>'\"%@#<\n \t~01.", max_size=60))
def test_random_yaml_never_raises(text: str) -> None:
    document = read_document("a.yaml", text.encode())
    if isinstance(document, Document):
        assert document.lines[()] >= 1


# ------------------------------------------------------------------------------------------------ the short way


def built(text: str) -> object:
    """What the builder makes of a text; None when it finds anything wrong with it."""
    builder = Builder()
    try:
        yaml_text.parse_yaml(text, builder)
    except Unreadable:
        return None
    return None if builder.flaws or not isinstance(builder.root, dict) else builder.root


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a: 1\nb: {c: [x, 'y', ~]}\nd: 1.5\n", True),
        ("a: Gr\u00f6\u00dfe\n", True),
        ("a: 1\na: 2\n", False),
        ("1: a\n", False),
        ("{a: b}: c\n", False),
        ("<<: {a: 1}\nb: 2\n", False),
        ("a: &x 1\nb: *x\n", False),
        ("a: !!str 1\n", False),
        ("a: !own {b: 1}\n", False),
        ("a: &x [1]\n", False),
        ("a: .inf\n", False),
        ("a: 18446744073709551616\n", False),
        ('a: "\\ud800"\n', False),
        ("a: 1\n---\nb: 2\n", False),
        ("- a\n", False),
        ("a\n", False),
        ("", False),
        ("a: [1\n", False),
        ("a: " + "[" * 64 + "]" * 64 + "\n", False),
        ("a: " + "[" * 63 + "]" * 63 + "\n", True),
        ("a: " + "x" * 25_000 + "\n", False),
    ],
)
@pytest.mark.usefixtures("_both_loaders")
def test_the_short_way_takes_what_needs_no_judgement(text: str, plain: bool) -> None:
    found = yaml_text.plain_mapping(text)
    assert (found is not None) is plain
    if plain:
        assert found == built(text)


@given(st.text("ab:-?[]{},&*!|>'\"%@#<\n \t~01.", max_size=60))
def test_the_short_way_reads_as_the_builder_does(text: str) -> None:
    found = yaml_text.plain_mapping(text)
    assert found is None or repr(found) == repr(built(text))


def test_a_file_without_a_finding_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_with_lines: list[str] = []
    build = documents._build

    def counted(file: str, text: str) -> Builder:
        read_with_lines.append(file)
        return build(file, text)

    monkeypatch.setattr(documents, "_build", counted)
    good = (
        "pipeline: {id: good}\nschedule: {cron: '0 5 * * *'}\njob: {type: external}\n"
        "validation: {rules: [{key: a, check: exists}]}\nsla: {deadline: '10:00', expectedDuration: 1h}\n"
    )
    (tmp_path / "good.yaml").write_text(good)
    (tmp_path / "bad.yaml").write_text(good.replace("good", "bad") + "unknown: 1\n")
    found = load_paths([tmp_path])
    assert [str(one).removeprefix(f"{tmp_path}/") for one in found.problems] == ["bad.yaml:6 unknown: unknown key"]
    assert [name.rpartition("/")[2] for name in read_with_lines] == ["bad.yaml"]
