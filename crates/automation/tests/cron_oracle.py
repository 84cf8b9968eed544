"""Writes the first part of cron_oracle.txt: the occurrences of cron schedules according to croniter 6.2.4.

    cd crates/automation/tests
    pip install croniter==6.2.4 && npm install --no-save cron-parser@5.10.4
    (python cron_oracle.py && node cron_oracle.mjs) > cron_oracle.txt

Each line has the library, a zone, a schedule, the number of its occurrences over 400 days, and a checksum of their
times. Known difference, as documented in src/schedule.rs: croniter runs a fixed time of day twice when the clocks go
back; the second run is left out here.
"""

import datetime
from zoneinfo import ZoneInfo

from croniter import croniter

SCHEDULES = [
    "0 8 * * *", "30 2 * * *", "*/15 * * * *", "0 */6 * * *", "0 12 13 * FRI", "15 10 1 * *", "0 9 * * MON-FRI",
    "5 4 * * SUN", "0 0 1 1 *", "*/20 9-17 * * MON,WED", "59 23 31 * *", "0 1 * * *", "30 0 29 2 *",
]
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
START = 1_767_225_600
END = START + 400 * 86_400
MODULUS = 2**61 - 1


def occurrences(schedule, zone):
    found = croniter(schedule, datetime.datetime.fromtimestamp(START, zone))
    minute, hour, *_ = schedule.split()
    is_fixed = minute.isdigit() and hour.isdigit()
    while True:
        try:
            at = found.get_next(datetime.datetime)
        except Exception:  # No occurrence in the years that croniter searches.
            return
        if at.timestamp() > END:
            return
        if not (is_fixed and at.fold == 1):
            yield int(at.timestamp())


for zone in ZONES:
    for schedule in SCHEDULES:
        times = list(occurrences(schedule, ZoneInfo(zone)))
        checksum = sum((at + 1) * time for at, time in enumerate(times)) % MODULUS
        print(f"croniter|{zone}|{schedule}|{len(times)}|{checksum}")
