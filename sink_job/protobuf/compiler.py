"""Compiles the text of a Protobuf schema with protoc.

A text is a .proto file, or the base64 of a serialised `FileDescriptorProto`: confluent-kafka registers schemas like
that, and not every registry makes a .proto file of it.

protoc runs in a process of its own: whatever it does with a schema, the worker continues. It takes about 30 ms, once
for each schema in a worker.

Files that a schema can import without a reference, as with Confluent's `ProtobufSchema`: `google/protobuf/*.proto`,
`google/type/*.proto`, `confluent/meta.proto` and `confluent/type/decimal.proto`.
"""

from __future__ import annotations

import base64
import errno
import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema import RegisteredSchema

ROOT: Final = "s3sink-root.proto"
"""The name of the file with the schema itself."""

_OWN: Final = Path(__file__).parent / "proto"
_RUN: Final = """
import sys
from grpc_tools import _protoc_compiler
sys.exit(_protoc_compiler.run_main([argument.encode() for argument in sys.argv]))
"""
_MAX_MESSAGE: Final = 500
_NO_ERROR: Final = re.compile(r"^WARNING|^[WI]\d{4} |: warning: ")


def compile_schema(schema: RegisteredSchema) -> bytes:
    """The serialised `FileDescriptorSet` of a schema: each file after those that it imports, the file ROOT last.

    Raises InvalidSchema with protoc's message, and OSError if protoc was killed from outside.
    """
    texts = {reference.name: reference.text for reference in schema.references} | {ROOT: schema.text}
    try:
        return _compiled(texts)
    except _ExplicitMapEntry:
        return _with_map_entries(_compiled({name: _MAP_ENTRY.sub(_MARK, text) for name, text in texts.items()}))


def _compiled(texts: dict[str, str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="s3sink-protoc-") as name:
        folder = Path(name)
        files = FileDescriptorSet()
        for path, text in texts.items():
            descriptor = descriptor_of(text)
            if descriptor is None:
                _write(folder, path, text)
            else:
                descriptor.name = path
                files.file.append(descriptor)
        (folder / _SET).write_bytes(files.SerializeToString())
        return _protoc(folder)


def descriptor_of(text: str) -> FileDescriptorProto | None:
    """The descriptor whose base64 form is `text`; None if that is not its form."""
    if not _BASE64.fullmatch(text):
        return None
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text))
    except (ValueError, DecodeError):
        return None


def _write(folder: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
        raise InvalidSchema(f"it refers to {name!r}, which is not the path of a file")
    try:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise InvalidSchema(f"it refers to {name!r}, which is a folder and a file") from None
    except UnicodeEncodeError:
        raise InvalidSchema("its text is not Unicode") from None
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise InvalidSchema(f"it refers to {name[:50]}…: the name is too long") from None


def _protoc(folder: Path) -> bytes:
    out = folder / _OUT
    paths = [folder, _OWN, _folder("grpc_tools") / "_proto", f"google/type={_folder('google.type.date_pb2')}"]
    options = [*(f"-I{path}" for path in paths), f"--descriptor_set_in={folder / _SET}", "--include_imports"]
    found = subprocess.run(
        [sys.executable, "-S", "-c", _RUN, *options, f"--descriptor_set_out={out}", ROOT],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(each).resolve()) for each in sys.path if each)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if found.returncode == 0:
        return out.read_bytes()
    if found.returncode in _KILLED:
        raise OSError(f"the Protobuf compiler was killed by signal {-found.returncode}")
    errors = found.stderr.decode(errors="replace")
    if _MAP_ENTRY_ERROR in errors:
        raise _ExplicitMapEntry(_reason(errors, folder))
    raise InvalidSchema(_reason(errors, folder))


class _ExplicitMapEntry(InvalidSchema):
    """A text has a map as a repeated message with the option map_entry, which protoc rejects. Texts that Apicurio's
    Java serializers register have that form."""


def _with_map_entries(descriptor_set: bytes) -> bytes:
    """Sets the option map_entry of the messages that are marked."""
    files = FileDescriptorSet.FromString(descriptor_set)
    for file in files.file:
        for message in file.message_type:
            _set_map_entries(message)
    found: bytes = files.SerializeToString()
    return found


def _set_map_entries(message: DescriptorProto) -> None:
    if _MARKER in message.reserved_name:
        message.reserved_name.remove(_MARKER)
        message.options.map_entry = True
    for nested in message.nested_type:
        _set_map_entries(nested)


_MARKER: Final = "s3sink_map_entry"
_MARK: Final = f'reserved "{_MARKER}";'
_MAP_ENTRY: Final = re.compile(r"\boption\s+map_entry\s*=\s*true\s*;")
_MAP_ENTRY_ERROR: Final = "map_entry should not be set explicitly"
_SET: Final = ".s3sink-in"
_OUT: Final = ".s3sink-out"
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}\s*")
_KILLED: Final = (-9, -15)


def _folder(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None, f"{name} is installed"
    assert spec.origin is not None, f"{name} is a file"
    return Path(spec.origin).parent


def _reason(output: str, folder: Path) -> str:
    """The first error of protoc, without warnings."""
    errors = [line for line in output.splitlines() if line.strip() and not _NO_ERROR.search(line)]
    text = errors[0] if errors else "the Protobuf compiler failed without a message"
    text = text.replace(f"{folder}/", "").removeprefix(f"{ROOT}:")
    return f"its text is not valid: {text[:_MAX_MESSAGE].strip()}"
