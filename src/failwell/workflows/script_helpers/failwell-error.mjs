// Raises a typed error from a Node script that failwell runs.
//
//   import { raiseError } from "./failwell-error.mjs";
//   raiseError({ kind: "external.git.drift", message: "the branch moved", details: { branch: "main" } });
//
// It writes the error and returns the path of the file; how the script ends is its own affair.
import { renameSync, writeFileSync } from "node:fs";
import process from "node:process";

export function raiseError({ kind, message, details } = {}) {
  const path = process.env.FAILWELL_ERROR_OUT || process.env.CONDUCTOR_ERROR_OUT;
  if (!path) {
    throw new Error("FAILWELL_ERROR_OUT is not set: run this script as a step of `failwell run`");
  }
  if (!kind || !message) {
    throw new TypeError("an error needs a kind and a message");
  }
  const error = { failwell_error: true, kind: String(kind), message: String(message) };
  if (details !== undefined && details !== null) {
    error.details = details;
  }
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, JSON.stringify(error), { encoding: "utf8", mode: 0o600 });
  renameSync(draft, path);
  return path;
}
