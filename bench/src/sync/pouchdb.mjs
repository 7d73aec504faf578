// The peer: PouchDB, which replicates from express-pouchdb. It is started where both packages are, and ends with its
// standard input.
//
// `node pouchdb.mjs serve FOLDER FILE` serves the documents of FILE, one a line, as the database `library`, and 39 more
// databases with a document each. It prints its port.
//
// `node pouchdb.mjs pull FOLDER PORT CHANGES` replicates the library, then so many changed documents, then nothing, and then
// nothing of all 40 databases. It prints what each of these took.
import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const require = createRequire(join(process.cwd(), 'package.json'));
const [role, folder, ...rest] = process.argv.slice(2);
// On leveldb, its default in Node.
const PouchDB = require('pouchdb').defaults({ prefix: `${folder}/` });
const OTHERS = Array.from({ length: 39 }, (_, number) => `other${number}`);
const DOCUMENTS_AT_ONCE = 1000;

// Counts requests and the bytes of bodies as they are sent.
function counting(counts) {
  return (_, response, next) => {
    counts.requests += 1;
    for (const name of ['write', 'end']) {
      const send = response[name];
      response[name] = function (part, ...others) {
        if (typeof part === 'string' || part instanceof Uint8Array) {
          counts.bytes += Buffer.byteLength(part);
        }
        return send.call(this, part, ...others);
      };
    }
    next();
  };
}

async function put(database, documents) {
  const results = await database.bulkDocs(documents);
  const failed = results.find((result) => result.error);
  if (failed) throw new Error(`${failed.id}: ${failed.message}`);
}

async function serve(file) {
  const express = require('express');
  const counts = { requests: 0, bytes: 0 };
  const app = express();
  app.get('/counts', (_, response) => response.json(counts));
  app.use(counting(counts));
  // The routes that replication needs, without the logging of all others.
  app.use(require('express-pouchdb')(PouchDB, { mode: 'minimumForPouchDB' }));
  const library = new PouchDB('library');
  let documents = [];
  for await (const line of createInterface({ input: createReadStream(file) })) {
    documents.push(JSON.parse(line));
    if (documents.length === DOCUMENTS_AT_ONCE) {
      await put(library, documents);
      documents = [];
    }
  }
  await put(library, documents);
  for (const name of OTHERS) await new PouchDB(name).put({ _id: 'one' });
  const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
}

async function pull(port, changes) {
  const url = `http://127.0.0.1:${port}`;
  const counts = async () => (await fetch(`${url}/counts`)).json();
  const replicate = async (names) => {
    const before = await counts();
    const begun = performance.now();
    const pulled = await Promise.all(names.map((name) => PouchDB.replicate(`${url}/${name}`, name)));
    const seconds = (performance.now() - begun) / 1000;
    const after = await counts();
    return {
      seconds,
      requests: after.requests - before.requests,
      bytes: after.bytes - before.bytes,
      read: pulled.reduce((sum, { docs_written: written }) => sum + written, 0),
    };
  };
  const full = await replicate(['library']);
  const server = new PouchDB(`${url}/library`);
  const { rows } = await server.allDocs({ limit: changes, include_docs: true });
  await put(server, rows.map(({ doc }) => ({ ...doc, version: (doc.version ?? 0) + 1 })));
  const changed = await replicate(['library']);
  const none = await replicate(['library']);
  const all = ['library', ...OTHERS];
  await replicate(all);
  const noneOfMany = await replicate(all);
  console.log(JSON.stringify({ full, changed, none, none_of_many: noneOfMany }));
  process.exit(0);
}

process.stdin.on('end', () => process.exit(0)).resume();
await (role === 'serve' ? serve(rest[0]) : pull(rest[0], Number(rest[1])));
