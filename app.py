"""Attention surgery: `python app.py` serves the page on this computer."""

import argparse
import os
import socket

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
if os.environ.get("SPACES_ZERO_GPU"):
    import spaces  # noqa: F401  before torch, which it prepares


def arguments() -> argparse.ArgumentParser:
    """The options of `python app.py`."""
    parser = argparse.ArgumentParser(
        description="Cut a piece out of a running transformer and see what it was for."
    )
    parser.add_argument(
        "--model", default="minilm", help="the model to start with: a name, a hub id or a folder"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, mps")
    parser.add_argument("--port", type=int, default=None, help="default: the first free one from 7860")
    parser.add_argument(
        "--host",
        default=None,
        help="the address to listen at; 0.0.0.0 lets a room in, with --public (default: this computer alone)",
    )
    parser.add_argument("--share", action="store_true", help="also serve it at a public gradio.live address")
    parser.add_argument(
        "--public", action="store_true", help="for strangers: only the models on offer (default on a Space)"
    )
    parser.add_argument(
        "--teacher",
        action="store_true",
        help="count the workshop's predictions, for an address printed at the start",
    )
    return parser


def check_port(host: str, port: int | None) -> None:
    """Ends the program with a sentence where something else listens at the port: at once, before a model is being loaded."""
    if port is None:
        return
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except (OSError, OverflowError) as error:
        raise SystemExit(
            f"Port {port} cannot be had: something else listens there, or it is not for you. Leave --port out to take a free one.\n"
            f"无法使用端口 {port}：已被占用或无权使用。去掉 --port 即可自动选择空闲端口。"
        ) from error


def main() -> None:
    """Serves the page; the model loads in the background."""
    args = arguments().parse_args()
    on_a_space = bool(os.environ.get("SPACE_ID"))
    host = args.host or ("0.0.0.0" if on_a_space else "127.0.0.1")
    check_port(host, args.port)
    from bilingual import SurgeryError
    from ui import zero
    from ui.app import build, serve
    from ui.lessons import Classroom
    from ui.pool import Pool

    try:
        pool = Pool(args.model, device=args.device, public=args.public or on_a_space)
    except SurgeryError as error:
        raise SystemExit(str(error)) from None
    zero.prepare(pool)
    room = Classroom() if args.teacher else None
    demo = build(pool, room)
    pool.warm()
    if room is not None:
        print(f"* Teacher's view: add ?teacher={room.key} to the address below.", flush=True)
    serve(demo, server_name=host, server_port=args.port, share=args.share)


if __name__ == "__main__":
    main()
