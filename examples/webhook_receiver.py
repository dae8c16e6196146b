"""python webhook_receiver.py [port]"""

import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

WEBHOOK = Webhook(os.environ["WHISPER_WEBHOOK_SECRET"])


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = WEBHOOK.verify(body, dict(self.headers.items()))
        except (WebhookVerificationError, ValueError):  # forged, old, or no signature at all
            return self.send_status(400)
        job = event["data"]
        print(event["type"], job["id"], job["filename"], flush=True)
        return self.send_status(204)

    def send_status(self, status):
        self.send_response(status)
        self.end_headers()


HTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9000), Receiver).serve_forever()
