# Runs flow tests of a Redis module, one at a time, against servers that are already running. Needs RLTest and redis-py on its path.
#
# It reads lines of JSON, and answers each with one line. {"list": FILE} returns the names of the file's tests.
# {"test": "file:name", "addr": ADDRESS, "timeout": SECONDS} runs one of them in a process of its own, and returns its output too.
import fnmatch
import importlib.util
import inspect
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import types
import unittest

SUITE = sys.argv[1]


def stub_paella():
    """The suites get the system's names from the package paella, which has a repository of its own."""
    class Platform:
        osnick, os, arch = 'linux', 'linux', 'x64'
    sys.modules['paella'] = types.SimpleNamespace(Platform=Platform)


stub_paella()
sys.path.insert(0, SUITE)

import redis  # noqa: E402
import RLTest.env  # noqa: E402
from RLTest import Defaults  # noqa: E402
from RLTest.exists_redis import ExistsRedisEnv  # noqa: E402

try:
    import numpy  # noqa: F401 some suites use it, and it is slow to load
except ImportError:
    pass


class LeftOut(unittest.SkipTest):
    """A test that cannot run against a single server as it is."""


# Settings of modules that are directives here but cannot change while a server runs are left out, with their tests.
SETTINGS = re.compile('^[A-Z_0-9]+$')


def module_settings(params):
    """Settings of the query engine, which suites give to the module when it is loaded; None if the arguments are others."""
    words = (params.get('moduleArgs') or '').split() if isinstance(params.get('moduleArgs') or '', str) else ['?']
    if len(words) % 2 or not all(SETTINGS.match(name) for name in words[::2]):
        return None
    return list(zip(words[::2], words[1::2]))


def refuse(**params):
    reasons = [
        ('module', 'a module file'),
        ('useSlaves', 'a replica'),
        ('redisConfigFile', 'a configuration file'),
        ('useAof', 'an append-only file'),
        ('password', 'a server with a password'),
    ]
    for name, reason in reasons:
        if params.get(name):
            raise LeftOut(reason)
    if (params.get('shardsCount') or 1) > 1:
        raise LeftOut('several shards')


env_init = RLTest.env.Env.__init__


def checked_init(self, testName=None, *args, **kwargs):
    bound = inspect.signature(env_init).bind(self, testName, *args, **kwargs)
    refuse(**bound.arguments)
    settings = module_settings(bound.arguments)
    if settings is None:
        raise LeftOut('a module loaded with arguments')
    env_init(self, testName, *args, **kwargs)
    words = os.environ.get('ATOMREDIS_MODULE_SETTINGS', '').split()  # of all tests
    for name, value in list(zip(words[::2], words[1::2])) + settings:
        try:
            self.getConnection().execute_command('FT.CONFIG', 'SET', name, value)
        except redis.ResponseError as e:
            raise LeftOut(f'a module loaded with {name} {value}: {e}')


def connection(self, shardId=1):
    """RLTest's own connection to such a server always speaks RESP2."""
    return redis.StrictRedis(self.host, self.port, decode_responses=self.decodeResponses, protocol=self.protocol)


exists_init = ExistsRedisEnv.__init__


def protocol_init(self, addr='localhost:6379', password=None, **kwargs):
    exists_init(self, addr, password, **kwargs)
    self.protocol = kwargs.get('protocol') or 2


def reload(self, restart=False, shardId=1, timeout_sec=0):
    self.getConnection().execute_command('DEBUG', 'RELOAD')


def left_out(reason):
    def method(*args, **kwargs):
        raise LeftOut(reason)
    return method


execute_command = redis.Redis.execute_command


def without_cluster_commands(self, *args, **kwargs):
    """A single server has no shards to be told about, and no second names of commands for them."""
    if args and isinstance(args[0], str) and args[0].upper().startswith('_FT.'):
        args = (args[0][1:],) + args[1:]
    if args and str(args[0]).upper() == 'TIMESERIES.REFRESHCLUSTER':
        return b'OK'
    return execute_command(self, *args, **kwargs)


def patch():
    RLTest.env.Env.__init__ = checked_init
    ExistsRedisEnv.__init__ = protocol_init
    ExistsRedisEnv.getConnection = connection
    ExistsRedisEnv.dumpAndReload = reload
    ExistsRedisEnv._waitForBgsaveToFinish = lambda self: None
    ExistsRedisEnv.getSlaveConnection = left_out('a replica')
    redis.Redis.execute_command = without_cluster_commands
    Defaults.env = 'existing-env'
    Defaults.logdir = tempfile.mkdtemp()
    # The suites' own helpers rely on these.
    Defaults.no_capture_output = True


patch()


def load(module_name):
    spec = importlib.util.spec_from_file_location(module_name, os.path.join(SUITE, module_name + '.py'))
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module


def names_of(module_name):
    module = load(module_name)
    for symbol in dir(module):
        target = getattr(module, symbol)
        if not symbol.lower().startswith('test') or getattr(target, '__module__', module_name) not in (module_name, 'common', 'includes'):
            continue
        if inspect.isclass(target):
            for method in dir(target):
                if method.lower().startswith('test') and callable(getattr(target, method)):
                    yield f'{module_name}:{symbol}.{method}'
        elif inspect.isfunction(target):
            yield f'{module_name}:{symbol}'


class Runner:
    """The part of RLTest's own runner that tests use."""
    currEnv = None


def call(name):
    module_name, _, symbol = name.partition(':')
    symbol, _, method = symbol.partition('.')
    Defaults.curr_test_name = name
    runner = RLTest.env.Env.RTestInstance = Runner()
    target = getattr(load(module_name), symbol)
    spec = getattr(target, '_rltest_env_spec', None) or {}
    make = lambda: Defaults.env_factory(testName=name, **spec)  # noqa: E731
    if method:
        obj = target(make()) if spec else target()
        getattr(obj, 'setUp', lambda: None)()
        getattr(obj, method)()
        getattr(obj, 'tearDown', lambda: None)()
    elif inspect.getfullargspec(target).args:
        target(make())
    else:
        target()
    env = runner.currEnv
    if env is not None and env.getNumberOfFailedAssertion():
        raise AssertionError('\n'.join(env.assertionFailedSummary))


def child(request, output):
    """Runs one test, and exits with 0 if it passed, 1 if it failed, 2 if it is left out."""
    os.setsid()
    os.chdir(SUITE)  # tests read files in the suite's directory
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    Defaults.external_addr = request['addr']
    code = 1
    try:
        call(request['test'])
        code = 0
    except unittest.SkipTest as e:
        print(str(e))
        code = 2
    except BaseException:
        traceback.print_exc(file=sys.stdout)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(request):
    with tempfile.TemporaryFile() as output:
        pid = os.fork()
        if pid == 0:
            child(request, output)
        until, state = time.monotonic() + request['timeout'], 'hung'
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                state = {0: 'passed', 2: 'skipped'}.get(os.waitstatus_to_exitcode(status), 'failed')
                break
            left = until - time.monotonic()
            if left <= 0:
                break
            signal.sigtimedwait([signal.SIGCHLD], min(left, 1))
        try:
            os.killpg(pid, signal.SIGKILL)  # including processes that the test started
        except ProcessLookupError:
            pass
        if state == 'hung':
            os.waitpid(pid, 0)
        output.seek(0)
        return {'state': state, 'output': re.sub('\x1b\\[[0-9;]*m', '', output.read().decode(errors='replace'))}


def files():
    return sorted(f[:-3] for f in os.listdir(SUITE) if fnmatch.fnmatch(f, 'test*.py'))


def answer(request):
    if 'test' in request:
        return run(request)
    found, broken = [], {}
    for name in files():
        try:
            found += names_of(name)
        except BaseException as e:
            broken[name] = f'{type(e).__name__}: {e}'
    return {'tests': found, 'broken': broken}


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # output of files while they are loaded
    for line in sys.stdin:
        json.dump(answer(json.loads(line)), answers)
        answers.write('\n')
        answers.flush()


main()
