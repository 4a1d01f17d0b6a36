"""Kinto as a WSGI application, configured by the file that KINTO_INI names."""

import os

from pyramid.paster import get_app

application = get_app(os.environ["KINTO_INI"])
