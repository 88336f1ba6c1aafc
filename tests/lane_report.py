#!/usr/bin/env python3
"""Reads what ctest --output-junit wrote and says what a lane did: why tests were skipped, which ones failed, and on the
last line the counts. ctest's own summary counts a skipped test as passed.

  tests/lane_report.py LANE FILE
"""

import collections
import re
import sys
import xml.etree.ElementTree as xml


def reason_of(output):
    """What a test said when it skipped itself: the lines between GoogleTest's "Skipped" and "[  SKIPPED ]"."""
    match = re.search(r": Skipped\n(.*?)\n?\[  SKIPPED \]", output, re.S)
    return " ".join(match.group(1).split()) if match and match.group(1).strip() else "no reason given"


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    lane, file = arguments
    passed = 0
    failed = []
    skipped = collections.defaultdict(list)
    for case in xml.parse(file).getroot().iter("testcase"):
        name = case.get("name")
        status = case.get("status")
        note = case.find("skipped")
        message = note.get("message", "") if note is not None else ""
        if status == "run":
            passed += 1
        elif status == "disabled":
            skipped["disabled"].append(name)
        elif status == "notrun" and message.startswith("SKIP_"):
            skipped[reason_of(case.findtext("system-out", ""))].append(name)
        else:  # failed, or could not be run: its program or what it needs is missing
            failed.append(f"{name} ({message})" if message else name)
    for reason, names in sorted(skipped.items()):
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        print(f"lane {lane}: skipped: {reason}: {listed}")
    for name in failed:
        print(f"lane {lane}: FAILED: {name}")
    print(f"lane {lane}: {passed} passed, {len(failed)} failed, {sum(map(len, skipped.values()))} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
