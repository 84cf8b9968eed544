// Writes the second part of cron_oracle.txt: the occurrences according to cron-parser 5.10.4. See cron_oracle.py.
//
// Known differences, as documented in src/schedule.rs: cron-parser moves a fixed time of day that does not exist by
// the length of the gap (2:30 becomes 3:30); here it is at the end of the gap (3:00), as with croniter. It finds no
// further times after a change of half an hour, so Australia/Lord_Howe is left to croniter.

import { CronExpressionParser } from "cron-parser";

const SCHEDULES = [
  "0 8 * * *", "30 2 * * *", "*/15 * * * *", "0 */6 * * *", "0 12 13 * FRI", "15 10 1 * *", "0 9 * * MON-FRI",
  "5 4 * * SUN", "0 0 1 1 *", "*/20 9-17 * * MON,WED", "59 23 31 * *", "0 1 * * *", "30 0 29 2 *",
];
const ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"];
const START = 1_767_225_600;
const END = START + 400 * 86_400;
const MODULUS = 2n ** 61n - 1n;

function occurrences(schedule, zone) {
  const [minute, hour] = schedule.split(" ").map(Number);
  const isFixed = Number.isInteger(minute) && Number.isInteger(hour);
  const found = CronExpressionParser.parse(schedule, { tz: zone, currentDate: new Date(START * 1000) });
  const times = [];
  for (;;) {
    let next;
    try {
      next = found.next();
    } catch {
      return times; // No occurrence in the years that cron-parser searches.
    }
    const isMoved = isFixed && next.getHours() !== hour;
    const at = Math.floor(next.getTime() / 1000) - (isMoved ? 60 * next.getMinutes() : 0);
    if (at > END) return times;
    times.push(at);
  }
}

for (const zone of ZONES) {
  for (const schedule of SCHEDULES) {
    const times = occurrences(schedule, zone);
    const sum = times.reduce((sum, time, index) => sum + BigInt(index + 1) * BigInt(time), 0n);
    console.log(`cron-parser|${zone}|${schedule}|${times.length}|${sum % MODULUS}`);
  }
}
