"""A tool server on fastmcp: one tool, one that reports progress, a resource and a prompt."""

from fastmcp import Context, FastMCP

server = FastMCP("peer")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
async def count(context: Context) -> str:
    """Counts to three and reports each number."""
    for number in range(1, 4):
        await context.report_progress(number, 3, f"number {number}")
    return "counted"


@server.resource("notes://today")
def today() -> str:
    """The note of today."""
    return "water the plants"


@server.prompt
def greet(name: str) -> str:
    """A greeting."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    server.run(show_banner=False)
