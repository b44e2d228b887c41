// A server of static files, as any would do for the playground.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';

const KINDS = { html: 'text/html; charset=utf-8', css: 'text/css', js: 'text/javascript', wasm: 'application/wasm' };

/** Serves the files of a folder whose path `has` accepts. */
export async function serveFolder(folder, has = () => true) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://host');
    const path = pathname === '/' ? '/index.html' : pathname;
    try {
      if (!has(path) || path.includes('..')) throw new Error('not here');
      const content = await readFile(folder + path);
      response.setHeader('Content-Type', KINDS[path.split('.').pop()] ?? 'application/octet-stream');
      response.end(content);
    } catch {
      response.statusCode = 404;
      response.end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, stop: () => server.close() };
}
