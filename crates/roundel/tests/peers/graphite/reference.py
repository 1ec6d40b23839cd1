# graphite-web in one process: a line of standard input is the path of a request; its answer is a line of status, bytes and
# seconds, and the body. The directory of RRDs and one for its own files are the arguments.
import os
import sys
import time

os.environ["DJANGO_SETTINGS_MODULE"] = "graphite.settings"
from django.conf import settings

base, own = sys.argv[1:3]
settings.SECRET_KEY = "test"
settings.ALLOWED_HOSTS = ["*"]
settings.LOG_DIR = settings.STORAGE_DIR = own
settings.STANDARD_DIRS = [base]
settings.RRD_DIR = base
settings.WHISPER_DIR = os.path.join(own, "whisper")
settings.RRD_CF = "AVERAGE"
settings.FLUSHRRDCACHED = ""
settings.TIME_ZONE = "UTC"
settings.CLUSTER_SERVERS = []
settings.CARBONLINK_HOSTS = []
settings.USE_WORKER_POOL = False
settings.LOG_RENDERING_PERFORMANCE = settings.LOG_CACHE_PERFORMANCE = settings.LOG_INFO_PERFORMANCE = False
settings.DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}

import django

django.setup()
from django.core.management import call_command

call_command("migrate", run_syncdb=True, verbosity=0)
from django.test import Client

client = Client(raise_request_exception=False)
for line in sys.stdin:
    begun = time.time()
    answer = client.get(line.rstrip("\n"))
    seconds = time.time() - begun
    sys.stdout.buffer.write(b"= %d %d %f\n" % (answer.status_code, len(answer.content), seconds) + answer.content)
    sys.stdout.buffer.flush()
