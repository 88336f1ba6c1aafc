#!/usr/bin/env python3
"""Checks the rules of the tree that no compiler knows: who may include whom, sizes and names of files, and the
coroutine forms that g++ 12 miscompiles. Findings read `path:line: message`; exit code 1 if there is one.

  tests/tidy.py [ROOT]       checks the tree
  tests/tidy.py --self-test  shows that every rule can fail
"""

import pathlib
import re
import sys

LAYERS = ["runtime", "net", "coll", "gpu"]  # each may include itself and those before it
FOLDERS = LAYERS + ["tests", "examples", "bench", "cmake", ".ci"]
LISTED = LAYERS + ["examples", "bench", "tests"]  # their CMakeLists.txt name every source
CODE = {".hpp", ".cpp", ".cu"}
CHECKED = CODE | {".py", ".sh", ".cmake", ".txt"}
BANNED_STEMS = {"utils", "util", "common", "helpers", "helper", "manager", "misc"}
MAX_LINES = 600
MAX_COLUMNS = 120

# Header prefix -> the files that may include it, as a regular expression on the path.
CONFINED = {
    r"liburing(\.h|/)": r"^runtime/io_uring_engine\.cpp$",
    r"sodium(\.h|/)": r"^(net/bootstrap|tests/net)/",
    r"infiniband/": r"^net/verbs/",
    r"(cuda|nvml|cublas|nccl)[a-z_]*\.h": r"^gpu/",
    r"hwloc(\.h|/)": r"^runtime/topology\.cpp$",
    r"hwy/": r"^(coll|tests/coll|bench)/",
    r"(spdlog|fmt)/": r"\.cpp$",
    r"CLI/": r"^(net/launch|bench|examples)/",
    r"nlohmann/": r"^(bench|examples|tests)/",
}
TRANSPORTS = ["shm", "tcp", "verbs", "sim"]


def strip(text):
    """Blanks comments, strings and character literals, keeping every newline and column."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.S)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def closing(text, position):
    """The index of the bracket that closes the one at `position`, or the end of the text."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    stack = []
    for index in range(position, len(text)):
        if text[index] in pairs:
            stack.append(pairs[text[index]])
        elif stack and text[index] == stack[-1]:
            stack.pop()
            if not stack:
                return index
    return len(text)


def operand(text, position):
    """What follows `position` in its own expression, with everything inside brackets left out."""
    out = []
    index = position
    while index < len(text) and text[index] not in ";,)]}":
        if text[index] in "([{":
            index = closing(text, index)
        else:
            out.append(text[index])
        index += 1
    return "".join(out)


def check_name(path, lines):
    stem = pathlib.PurePath(path).stem
    if any(word in BANNED_STEMS for word in stem.split("_")):
        yield 1, f"the name '{stem}' says nothing about what is inside"
    if path.endswith(tuple(CODE)) and not re.fullmatch(r"[a-z0-9_]+", stem):
        yield 1, f"file names are snake_case, not '{stem}'"


def check_size(path, lines):
    if len(lines) > MAX_LINES:
        yield MAX_LINES + 1, f"{len(lines)} lines; the limit is {MAX_LINES}: split it by concept"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns; the limit is {MAX_COLUMNS}"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        if "\t" in line:
            yield number, "a tab; indent with spaces"


def check_todo(path, lines):
    for number, line in enumerate(lines, 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b(?!\([^)]+\): \S)", line) and path != "tests/tidy.py":
            yield number, "a TODO names its reason: TODO(reason): what"


def check_includes(path, lines):
    folder = path.split("/")[0]
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        quote, header = match.groups()
        for prefix, allowed in CONFINED.items():
            if re.match(prefix, header) and not re.search(allowed, path):
                yield number, f"<{header}> may only be included by files that match {allowed}"
        if folder not in LAYERS:
            continue
        if quote == '"' and not header.startswith(("weft/", "hwy/")):
            yield number, f'write "weft/{folder}/...", not "{header}"'
        layer = re.match(r"weft/([^/]+)/", header)
        if header == "weft/weft.hpp":
            yield number, "a layer does not include the umbrella"
        elif layer and layer.group(1) not in LAYERS:
            yield number, f"there is no layer '{layer.group(1)}'"
        elif layer and LAYERS.index(layer.group(1)) > LAYERS.index(folder):
            yield number, f"{folder} must not know {layer.group(1)}: gpu -> coll -> net -> runtime"
        inner = re.match(r"net/(%s)/" % "|".join(TRANSPORTS), path)
        if not inner:
            continue
        for other in TRANSPORTS:
            if other != inner.group(1) and header.startswith(f"weft/net/{other}/"):
                yield number, f"transport {inner.group(1)} must not know transport {other}"
        if header.startswith("weft/net/match/"):
            yield number, "a transport must not know matching"
        if header.startswith("weft/net/protocol/") and header != "weft/net/protocol/wire_header.hpp":
            yield number, "of the protocol a transport may know wire_header.hpp only"


def check_header(path, lines):
    if not path.endswith(".hpp"):
        return
    if not any(line.startswith("#pragma once") for line in lines):
        yield 1, "#pragma once is missing"
    if lines and not lines[0].startswith(("//", "/*")):
        yield 1, "a header begins with what it is and why"
    for number, line in enumerate(lines, 1):
        if re.match(r"\s*using namespace\b", line):
            yield number, "a header must not say 'using namespace'"


def check_preprocessor(path, lines):
    for number, line in enumerate(lines, 1):
        if re.match(r"\s*#\s*if\s+(0|false)\b", line):
            yield number, "delete what is switched off"


def check_await(path, lines):
    """co_await stands alone: g++ 12 mishandles it in heads, in ?: and with temporaries in braces or test macros."""
    if path.startswith("tests/compiler/"):
        return  # the probe of these very bugs
    text = re.sub(r"\boperator\s+co_await\b", lambda m: " " * len(m.group()), strip("\n".join(lines)))
    for match in re.finditer(r"\b(if(?:\s+constexpr)?|while|switch|for)\s*\(", text):
        if re.search(r"\bco_await\b", text[match.end():closing(text, match.end() - 1)]):
            yield line_of(text, match.start()), f"co_await in the head of '{match.group(1)}'; name its value first"
    for match in re.finditer(r"\b((?:EXPECT|ASSERT)_\w+|WEFT_ASSERT|WEFT_DEBUG_ASSERT)\s*\(", text):
        body = text[match.end():closing(text, match.end() - 1)]
        if re.search(r"\bco_await\b", body) and "[" not in body:
            yield line_of(text, match.start()), f"co_await inside {match.group(1)}; name its value first"
    for match in re.finditer(r"\bco_await\b", text):
        line = line_of(text, match.start())
        begin = max(text.rfind(mark, 0, match.start()) for mark in ";{}") + 1
        statement = text[begin:match.start()]
        if text[begin - 1:begin] == "{" and re.search(r"(?:[\w>)\]]|=|\breturn)\s*$", text[:begin - 1]):
            before = text[:begin - 1].rstrip()
            head = re.search(r"(?:\)|\b(?:else|do|try|noexcept|const|override|mutable)|->\s*[\w:<>,\s*&]+)$", before)
            if not head:
                yield line, "co_await inside braces; name its value first"
        end = text.find(";", match.start())
        expression = text[match.end():end if end >= 0 else len(text)]
        beside = operand(text, match.end())
        if "?" in statement or "?" in beside:
            yield line, "co_await in ?:; use if"
        if re.search(r"(&&|\|\|)\s*$", statement) or re.search(r"&&|\|\|", beside):
            yield line, "co_await beside && or ||; name its value first"
        if re.match(r"\s*auto\s*&{0,2}\s*\[", statement):
            yield line, "structured binding straight from co_await; name its value first"
        # An argument that is made in place of several parts, T{a, b} or {a, b}, lives in the frame and dies twice.
        if re.match(r"[^;{}]*[(,]\s*[\w:<>]*\{[^{};]*[^{};\s][^{};]*\}", expression) and "[" not in expression:
            yield line, "a braced temporary inside a co_await expression; name it first"


def check_lambda_coroutines(path, lines):
    if path.startswith("tests/compiler/"):
        return
    text = strip("\n".join(lines))
    for match in re.finditer(r"(?:^|[=(,{;&|?:]|\breturn)\s*(\[)(?!\[)", text):
        start = match.start(1)
        end = closing(text, start)
        captures = text[start + 1:end].strip()
        rest = re.match(r"\s*(?:<[^{};]*>\s*)?(\()?", text[end + 1:])
        position = end + 1 + rest.end()
        if rest.group(1):
            position = closing(text, position - 1) + 1
        tail = re.match(r"\s*(?:mutable\b|noexcept\b|\s)*(?:->[^{};]*)?\{", text[position:])
        if not captures or not tail or text[start - 1:start].isalnum():
            continue
        begin = position + tail.end() - 1
        body = text[begin:closing(text, begin)]
        if re.search(r"\bco_(await|return|yield)\b", drop_inner_lambdas(body)):
            yield line_of(text, start), "a lambda with captures is not a coroutine; write a named function"


def drop_inner_lambdas(body):
    """A capture-less lambda coroutine inside a capturing lambda is the inner one's business."""
    while True:
        match = re.search(r"\[\s*\]\s*(\([^()]*\)\s*)?(?:->[^{};]*)?\{", body[1:])
        if not match:
            return body
        begin = match.end()
        body = body[:match.start() + 1] + body[closing(body, begin) + 1:]


def check_listed(lists, sources):
    """Every source is named in the lists (folder -> text of its CMakeLists.txt), and every name in a list exists.
    Tests and fuzzers are listed by stem."""
    named = {}
    for folder, text in lists.items():
        text = re.sub(r"#.*|\$\{PROJECT_SOURCE_DIR\}[^\s)]*", "", text)
        text = text.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")
        names = re.findall(r"(?<![\w/}-])[\w/]+\.(?:cpp|cu)\b", text)
        if folder.startswith("tests/fuzz"):
            names = [stem + ".cpp" for stem in re.findall(r"weft_add_fuzzer\((\w+) ", text)]
        elif folder.startswith("tests/"):
            names += [stem + ".cpp" for stem in re.findall(r"^\s*([\w/]+_test)\s*$", text, re.M)]
        for name in names:
            named[f"{folder}/{name}"] = folder
    for source in sorted(set(sources) - set(named)):
        yield source, 1, "not listed in any CMakeLists.txt above it"
    for source in sorted(set(named) - set(sources)):
        yield f"{named[source]}/CMakeLists.txt", 1, f"names {source}, which does not exist"


TEXT_RULES = [check_name, check_size, check_todo]
CODE_RULES = [check_includes, check_header, check_preprocessor, check_await, check_lambda_coroutines]


def findings_of(path, text):
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    rules = TEXT_RULES + (CODE_RULES if pathlib.PurePath(path).suffix in CODE else [])
    for rule in rules:
        yield from rule(path, lines)


def check_tree(root):
    count = 0
    bad = 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root).as_posix()
            if not file.is_file() or file.suffix not in CHECKED and path != ".ci/run":
                continue
            count += 1
            for line, message in findings_of(path, file.read_text(encoding="utf-8")):
                print(f"{path}:{line}: {message}")
                bad += 1
    for folder in LISTED:
        files = list((root / folder).rglob("*"))
        lists = {file.parent.relative_to(root).as_posix(): file.read_text()
                 for file in files if file.name == "CMakeLists.txt"}
        sources = [file.relative_to(root).as_posix() for file in files if file.suffix in {".cpp", ".cu"}]
        for path, line, message in check_listed(lists, sources):
            print(f"{path}:{line}: {message}")
            bad += 1
    print(f"tidy: {count} files, {bad} findings")
    if count == 0:
        print("tidy: found no file to check", file=sys.stderr)
        return 1
    return 1 if bad else 0


HEADER = "// What it is.\n#pragma once\n"
# (path, text, a part of the message expected, or None where nothing may be found)
SAMPLES = [
    ("runtime/a.hpp", HEADER + '#include "weft/net/b.hpp"\n', "must not know net"),
    ("net/a.hpp", HEADER + '#include "weft/runtime/b.hpp"\n', None),
    ("net/a.hpp", HEADER + '#include <weft/coll/b.hpp>\n', "must not know coll"),
    ("coll/a.hpp", HEADER + '#include "weft/gpu/b.hpp"\n', "must not know gpu"),
    ("coll/a.hpp", HEADER + '#include "b.hpp"\n', "write \"weft/coll"),
    ("coll/a.hpp", HEADER + '#include "weft/weft.hpp"\n', "umbrella"),
    ("coll/a.hpp", HEADER + '#include "weft/nets/b.hpp"\n', "no layer"),
    ("runtime/reactor.cpp", "#include <liburing.h>\n", "liburing"),
    ("runtime/io_uring_engine.cpp", "#include <liburing.h>\n", None),
    ("net/tcp/a.cpp", "#include <sodium.h>\n", "sodium"),
    ("net/bootstrap/token.cpp", "#include <sodium.h>\n", None),
    ("net/tcp/a.cpp", "#include <infiniband/verbs.h>\n", "infiniband"),
    ("coll/a.cpp", "#include <cuda_runtime.h>\n", "cuda_runtime"),
    ("gpu/a.cpp", "#include <cuda_runtime.h>\n", None),
    ("net/a.hpp", HEADER + "#include <spdlog/spdlog.h>\n", "spdlog"),
    ("net/shm/a.cpp", '#include "weft/net/tcp/b.hpp"\n', "must not know transport tcp"),
    ("net/tcp/a.cpp", '#include "weft/net/match/b.hpp"\n', "matching"),
    ("net/tcp/a.cpp", '#include "weft/net/protocol/eager.hpp"\n', "wire_header.hpp only"),
    ("net/tcp/a.cpp", '#include "weft/net/protocol/wire_header.hpp"\n', None),
    ("net/a.hpp", "// What.\nint x;\n", "#pragma once"),
    ("net/a.hpp", "#pragma once\n", "begins with"),
    ("net/a.hpp", HEADER + "using namespace std;\n", "using namespace"),
    ("net/socket_utils.cpp", "", "says nothing"),
    ("net/common.cpp", "", "says nothing"),
    ("net/Socket.cpp", "", "snake_case"),
    ("net/a.cpp", "x;\n" * 601, "601 lines"),
    ("net/a.cpp", "x;\n" * 600, None),
    ("net/a.cpp", "x" * 121 + "\n", "121 columns"),
    ("net/a.cpp", "x" * 120 + "\n", None),
    ("net/a.cpp", "int x; \n", "blanks"),
    ("net/a.cpp", "\tint x;\n", "tab"),
    ("net/a.cpp", "// TODO make it fast\n", "TODO"),
    ("net/a.cpp", "// TODO(needs a second NIC): stripe\n", None),
    ("net/a.cpp", "#if 0\n#endif\n", "switched off"),
    ("net/a.cpp", "void f() { if (co_await g()) h(); }\n", "head of 'if'"),
    ("net/a.cpp", "void f() { while (\n  !co_await g()) h(); }\n", "head of 'while'"),
    ("net/a.cpp", "void f() { switch (co_await g()) {} }\n", "head of 'switch'"),
    ("net/a.cpp", "void f() { for (auto x : co_await g()) h(x); }\n", "head of 'for'"),
    ("net/a.cpp", "void f() { if (x) co_await g(); }\n", None),
    ("net/a.cpp", "void f() { if (x) { co_await g(); } else { co_await h(); } }\n", None),
    ("net/a.cpp", "Task<int> f() { co_await g(); try { co_await h(); } catch (...) {} co_return 1; }\n", None),
    ("net/a.cpp", "auto f = [](int x) -> Task<void> { co_await g(x); };\n", None),
    ("net/a.cpp", "void f() { auto x = y ? co_await g() : 0; }\n", "?:"),
    ("net/a.cpp", "void f() { auto x = co_await g() ? 1 : 0; }\n", "?:"),
    ("net/a.cpp", "void f() { bool x = a && co_await g(); }\n", "&&"),
    ("net/a.cpp", "void f() { bool x = co_await g() || a; }\n", "||"),
    ("net/a.cpp", "void f() { co_await g(a && b, c ? 1 : 2); }\n", None),
    ("net/a.hpp", HEADER + "auto operator co_await() && noexcept;\n", None),
    ("net/a.cpp", "void f() { auto [a, b] = co_await g(); }\n", "structured binding"),
    ("net/a.cpp", "void f() { co_await g({a, b}); }\n", "braced temporary"),
    ("net/a.cpp", "void f() { co_await g(Options{a}); }\n", "braced temporary"),
    ("net/a.cpp", "void f() { auto x = Pair{co_await g(), 2}; }\n", "inside braces"),
    ("net/a.cpp", "// if (co_await x)\nauto s = \"if (co_await x)\";\n", None),
    ("tests/net/a_test.cpp", "void f() { EXPECT_EQ(co_await g(), 1); }\n", "inside EXPECT_EQ"),
    ("tests/net/a_test.cpp", "void f() { auto x = co_await g();\n EXPECT_EQ(x, 1); }\n", None),
    ("net/a.cpp", "auto f = [&]() -> Task<void> { co_await g(); };\n", "lambda with captures"),
    ("net/a.cpp", "run([x, y = 2](int z) mutable -> Task<int> { co_return x + z; });\n", "lambda with captures"),
    ("net/a.cpp", "run([this] { co_await g(); });\n", "lambda with captures"),
    ("net/a.cpp", "run([&] { return [](int x) -> Task<int> { co_return x; }(1); });\n", None),
    ("net/a.cpp", "Task<int> f(int* a) { a[1] = 2; co_return a[2]; }\n", None),
]


def self_test():
    wrong = 0
    for path, text, expected in SAMPLES:
        messages = [message for _, message in findings_of(path, text)]
        good = not messages if expected is None else any(expected in message for message in messages)
        if not good:
            print(f"self-test: {path}: {text[:80]!r}: expected {expected!r}, found {messages}")
            wrong += 1
    lists = {"net": "SOURCES\n  a.cpp\n  tcp/b.cpp\n", "net/launch": "c.cpp",
             "tests/net": "UNIT\n    tcp/e_test\n  SUPPORT\n    f.cpp\n",
             "tests/fuzz": "weft_add_fuzzer(g_fuzz MAX_LENGTH 64 SOURCES net/a.cpp)\n"}
    sources = ["net/a.cpp", "net/tcp/b.cpp", "net/launch/c.cpp",
               "tests/net/tcp/e_test.cpp", "tests/net/f.cpp", "tests/fuzz/g_fuzz.cpp"]
    if list(check_listed(lists, sources)) or len(list(check_listed(lists, sources[1:] + ["net/d.cpp"]))) != 2:
        print("self-test: check_listed is wrong")
        wrong += 1
    if len(list(check_listed(lists, sources[:3] + ["tests/net/h_test.cpp", "tests/fuzz/i_fuzz.cpp"]))) != 5:
        print("self-test: check_listed is wrong")
        wrong += 1
    print(f"tidy self-test: {len(SAMPLES) + 1} samples, {wrong} wrong")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    return check_tree(root)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
