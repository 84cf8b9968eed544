"""A real SMTP server (aiosmtpd) on loopback: port, mode `plain` or `starttls`, and a folder.

Each accepted e-mail is one JSON file in the folder. In the mode `starttls` nothing is accepted before the connection
is encrypted. The certificate of the server's own authority is `ca.pem` in the folder. The only user is `lango`."""

import email
import email.policy
import json
import pathlib
import ssl
import sys
import threading

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

port, mode, folder = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
PASSWORD = b"correct horse battery"


class Store:
    def __init__(self):
        self.count = 0

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.count += 1
        record = {
            "sender": envelope.mail_from,
            "recipients": envelope.rcpt_tos,
            "encrypted": session.ssl is not None,
            "user": session.auth_data.login.decode() if session.auth_data else None,
            "headers": [[name, str(value)] for name, value in message.items()],
            "text": message.get_content(),
        }
        (folder / f"{self.count}.json").write_text(json.dumps(record))
        return "250 stored"


def authenticate(server, session, envelope, mechanism, data):
    is_known = data.login == b"lango" and data.password == PASSWORD
    return AuthResult(success=is_known, handled=False, auth_data=data)


options = {"authenticator": authenticate, "auth_required": True, "auth_require_tls": mode == "starttls"}
authority = trustme.CA()
authority.cert_pem.write_to_path(str(folder / "ca.pem"))
if mode == "starttls":
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    options |= {"tls_context": context, "require_starttls": True}
Controller(Store(), hostname="127.0.0.1", port=port, **options).start()
threading.Event().wait()
