"""Workflows of trivial steps with DBOS on SQLite: dbos_steps.py FILE WORKFLOWS STEPS ALONE_RUNS"""

import json
import statistics
import sys
import time

from dbos import DBOS, DBOSConfig

file, workflows, steps, alone_runs = sys.argv[1], *map(int, sys.argv[2:5])
config: DBOSConfig = {
    "name": "bench",
    "system_database_url": f"sqlite:///{file}",
    "log_level": "ERROR",
    "run_admin_server": False,
}
DBOS(config=config)


@DBOS.step()
def step(number: int) -> str:
    return f"result of s{number}"


@DBOS.workflow()
def chain() -> str:
    result = ""
    for number in range(steps):
        result = step(number)
    return result


DBOS.launch()
chain()
alone = []
for _ in range(alone_runs):
    began = time.perf_counter()
    chain()
    alone.append((time.perf_counter() - began) * 1e3)
began = time.perf_counter()
handles = [DBOS.start_workflow(chain) for _ in range(workflows)]
for handle in handles:
    handle.get_result()
seconds = time.perf_counter() - began
print(json.dumps({"steps_per_s": workflows * steps / seconds, "alone_ms": statistics.median(alone)}))
sys.stdout.flush()
DBOS.destroy()
