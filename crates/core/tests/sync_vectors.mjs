// Runs the program `sync_vectors` in WebAssembly: node sync_vectors.mjs PROGRAM
import { readFileSync } from "node:fs";

const text = readFileSync(new URL("sync_vectors.json", import.meta.url), "utf8");
const names = JSON.parse(text).map((vector) => vector.name);

// It imports nothing: the machine has no clock, no randomness and no I/O.
const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), {});
let wrong;
try {
  wrong = instance.exports.main(0, 0);
} catch (error) {
  console.error(`the program ended in WebAssembly: ${error.stack}`);
  process.exit(1);
}
if (wrong !== 0) {
  console.error(`the vector ${wrong} does not hold in WebAssembly: ${names[wrong - 1]}`);
  process.exit(1);
}
console.log(`${names.length} vectors hold in WebAssembly`);
