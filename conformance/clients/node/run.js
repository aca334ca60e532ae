// What the programs in this directory share.
'use strict';

const [host, port] = (process.argv[2] ?? '127.0.0.1:6379').split(':');

// The server under test.
exports.address = { host, port: Number(port) };

// until waits for a condition, and fails when it does not come.
exports.until = async (what, condition, ms = 20_000) => {
  for (const end = Date.now() + ms; !(await condition()); ) {
    if (Date.now() > end) {
      throw new Error(`not within ${ms} ms: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

// run ends the process with what main says: a line of its own, or a failure.
exports.run = (main) => {
  main().then(
    (line) => {
      console.log(line);
      process.exit(0);
    },
    (e) => {
      console.error(e);
      process.exit(1);
    },
  );
};
