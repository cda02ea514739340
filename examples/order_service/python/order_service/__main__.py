"""The command line: ``python -m order_service place ID QUANTITY ARTICLE | relay | ship``."""

import argparse
import time
from pathlib import Path

from order_service.order import Order
from order_service.outbox import Outbox
from order_service.relay import Relay
from order_service.shipping import Shipping

_PAUSE_S = 0.5


def main() -> None:
    """Run a part of the service; ``relay`` and ``ship`` go on until they are killed."""
    arguments = _parser().parse_args()
    folder: Path = arguments.folder
    outbox = Outbox(folder / "orders.db")
    if arguments.part == "place":
        outbox.place(
            Order(
                order_id=arguments.order_id,
                quantity=arguments.quantity,
                article=arguments.article,
            )
        )
    elif arguments.part == "relay":
        with Relay(outbox, arguments.bootstrap) as relay:
            while True:
                relay.run_once()
                time.sleep(_PAUSE_S)
    else:
        shipments = folder / "shipments.db"
        with Shipping(shipments, arguments.bootstrap, on_lost=outbox.send_again) as shipping:
            shipping.run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m order_service")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="brokers, as host:port,...")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the databases are")
    parts = parser.add_subparsers(dest="part", required=True)
    place = parts.add_parser("place", help="take an order")
    place.add_argument("order_id")
    place.add_argument("quantity", type=int)
    place.add_argument("article")
    parts.add_parser("relay", help="send what is in the outbox")
    parts.add_parser("ship", help="handle orders")
    return parser


if __name__ == "__main__":
    main()
