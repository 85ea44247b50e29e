# SPDX-License-Identifier: GPL-3.0-or-later
"""How the gate's Python processes talk: a message is its length (4 bytes, little-endian) and that many bytes of JSON, over the stream socket that
is descriptor 3. The gate puts this text before a script's own and runs both as one, `python3 -c <this text>`."""
import sys

sys.path = [folder for folder in sys.path if folder]  # nothing is imported from the current folder

import json
import socket
import struct

VERSION = 1  # said in the first message


def channel():
    return socket.socket(fileno=3)


def send(connection, message):
    """Sends one message."""
    data = json.dumps(message).encode()
    connection.sendall(struct.pack("<I", len(data)) + data)


def receive(connection):
    """Waits for one. The process ends with the conversation."""

    def exactly(count):
        data = b""
        while len(data) < count:
            piece = connection.recv(count - len(data))
            if not piece:
                sys.exit(0)
            data += piece
        return data

    return json.loads(exactly(struct.unpack("<I", exactly(4))[0]))
