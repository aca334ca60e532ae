// Code shared by the programs in this directory.
'use strict';

const [host, port] = (process.argv[2] ?? '127.0.0.1:6379').split(':');

// The server under test.
exports.address = { host, port: Number(port) };

// until waits for a condition, and fails after a timeout.
exports.until = async (what, condition, ms = 20_000) => {
  for (const end = Date.now() + ms; !(await condition()); ) {
    if (Date.now() > end) {
      throw new Error(`not within ${ms} ms: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

// run prints the line that main returns, or its failure, and ends the process.
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
