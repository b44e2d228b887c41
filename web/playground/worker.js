// Runs one request in the module, beside the page. The page makes a worker of this text, so that its policy applies here.

/** Bytes that are read from a file at a time. */
const PIECE_BYTES = 4 << 20;

/**
 * Carries out a request; returns the response's text. Throws the message of a refusal as a string.
 * `copyFile(target)` puts `bytes` bytes of a file there.
 */
function respond(exports, request, bytes, copyFile) {
  const text = new TextEncoder().encode(JSON.stringify(request));
  const address = exports.buffer(text.length + bytes) >>> 0;
  const memory = () => new Uint8Array(exports.memory.buffer);
  memory().set(text, address);
  if (bytes > 0) copyFile(memory().subarray(address + text.length, address + text.length + bytes));
  const result = exports.respond(text.length);
  const length = exports.buffer_bytes() >>> 0;
  const start = exports.buffer(length) >>> 0;
  const response = new TextDecoder().decode(memory().subarray(start, start + length));
  if (result < 0) throw response;
  return response;
}

/** Copies a file to memory, piece by piece, so that it is there only once. Throws a message as a string. */
function copyTo(target, file) {
  const reader = new FileReaderSync();
  for (let at = 0; at < file.size; at += PIECE_BYTES) {
    let piece;
    try {
      piece = reader.readAsArrayBuffer(file.slice(at, at + PIECE_BYTES));
    } catch (error) {
      throw `${file.name}: read error (${error.name}: it was changed, moved or removed, or is protected); choose it again`;
    }
    target.set(new Uint8Array(piece), at);
  }
}

if (typeof WorkerGlobalScope !== 'undefined') {
  self.onmessage = ({ data: { module, request, file } }) => {
    const progress = (share) => self.postMessage({ share });
    WebAssembly.instantiate(module, { page: { progress } }).then(({ exports }) => {
      const response = respond(exports, request, file?.size ?? 0, (target) => copyTo(target, file));
      self.postMessage({ response });
    }).catch((error) => {
      self.postMessage(typeof error === 'string' ? { refusal: error } : { crash: `${error.name}: ${error.message}` });
    });
  };
}
