"""Fifty programs that try to get at something, use something up, or stay behind.

``{treasure}`` is a file outside, ``{port}`` a server on this machine, ``{pid}`` the process that
asked for the program; the environment has SECRET in it.
"""

from __future__ import annotations

READING = {
    "read_outside": "print(open('{treasure}').read())",
    "read_passwd": "print(open('/etc/passwd').read())",
    "read_shadow": "print(open('/etc/shadow').read())",
    "list_home": "import os; print(os.listdir('/root'))",
    "list_tmp": "import os; print(os.listdir('/tmp'))",
    "walk": "import os\nfor d, _, f in os.walk('/tmp'):\n  print(d, f)",
    "environment": "import os; print(dict(os.environ))",
    "parents_environment": "print(open('/proc/{pid}/environ').read())",
    "every_environment": "import glob\n"
    "for p in glob.glob('/proc/*/environ'):\n  print(open(p).read())",
    "parents_memory": "print(open('/proc/{pid}/mem', 'rb').read(1))",
    "parents_files": "import os; print(os.listdir('/proc/{pid}/fd'))",
    "parents_root": "print(open('/proc/{pid}/root{treasure}').read())",
    "link": "import os; os.symlink('{treasure}', 'x'); print(open('x').read())",
    "hard_link": "import os; os.link('{treasure}', 'x'); print(open('x').read())",
    "upwards": "import os; print(open('../' * 20 + '{treasure}'.lstrip('/')).read())",
    "shell": "import os; os.system('cat {treasure}; env')",
    "subprocess": "import subprocess; print(subprocess.run(['/bin/cat', '{treasure}'], "
    "capture_output=True))",
    "descriptors": "import os\nfor n in range(3, 64):\n  try: print(n, os.read(n, 100))\n"
    "  except OSError: pass",
    "disk": "print(open('/dev/sda', 'rb').read(10), open('/dev/vda', 'rb').read(10))",
    "kernel_memory": "print(open('/dev/mem', 'rb').read(10))",
}
WRITING = {
    "overwrite": "open('{treasure}', 'w').write('mine')",
    "append": "open('{treasure}', 'a').write('mine')",
    "remove": "import os; os.remove('{treasure}')",
    "rename": "import os; os.rename('{treasure}', '{treasure}.old')",
    "remove_tree": "import shutil, os; shutil.rmtree(os.path.dirname('{treasure}'))",
    "change_mode": "import os; os.chmod('{treasure}', 0)",
    "truncate": "import os; os.truncate('{treasure}', 0)",
    "beside": "import os; open(os.path.dirname('{treasure}') + '/new', 'w').write('mine')",
    "in_tmp": "open('/tmp/left-behind-by-a-program', 'w').write('mine')",
    "in_python": "import json; open(json.__file__, 'a').write('# mine')",
    "mount": "import ctypes; l = ctypes.CDLL(None)\n"
    "print(l.mount(b'none', b'/usr', b'tmpfs', 0, 0))",
    "change_root": "import os; os.mkdir('r'); os.chroot('r')",
}
REACHING = {
    "connect": "import socket; s = socket.create_connection(('127.0.0.1', {port}), 2); "
    "s.sendall(b'here')",
    "send": "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
    "s.sendto(b'here', ('127.0.0.1', {port}))",
    "fetch": "import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/', timeout=2).read()",
    "name": "import socket; print(socket.getaddrinfo('example.org', 80))",
    "listen": "import socket; s = socket.create_server(('0.0.0.0', {port} + 1)); s.accept()",
    "raw": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "kill_parent": "import os; os.kill({pid}, 9)",
    "kill_all": "import os; os.kill(-1, 9)",
    "become_root": "import os; os.setuid(0); print(open('{treasure}').read())",
}
USING_UP = {
    "forks": "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
    "threads": "import threading, time\nwhile True:\n"
    "  threading.Thread(target=time.sleep, args=(99,)).start()",
    "memory": "x = []\nwhile True: x.append(bytearray(1 << 24))",
    "memory_of_many": "import os, time\nfor _ in range(3): os.fork()\nx = bytearray(40 << 20)\n"
    "x[::4096] = b'1' * len(x[::4096])\ntime.sleep(99)",
    "one_file": "f = open('x', 'wb')\nwhile True: f.write(b'0' * (1 << 20))",
    "many_files": "i = 0\nwhile True:\n  open(str(i), 'wb').write(b'0' * (1 << 20)); i += 1",
    "output": "while True: print('x' * 1000)",
    "time": "while True: pass",
    "stays": "import os, time, signal\n"
    "for n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n"
    "  except (OSError, ValueError): pass\n"
    "if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    time.sleep(999)\n"
    "print('gone')",
}
PROGRAMS = READING | WRITING | REACHING | USING_UP
