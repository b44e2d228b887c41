// The program under test, and a proxy that breaks its connections.

import { spawn } from 'node:child_process';
import net from 'node:net';

/** A running `cardiograph` that serves. */
export class Server {
  /** Starts the program; resolves once it has printed its address. */
  static start(program, args) {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    return new Promise((resolve, reject) => {
      let printed = '';
      child.stdout.on('data', (data) => {
        printed += data;
        const url = /http:\/\/127\.0\.0\.1:(\d+)\//.exec(printed);
        if (url) resolve(new Server(child, Number(url[1])));
      });
      child.on('exit', (code) => reject(new Error(`the server ended with ${code}: ${printed}`)));
    });
  }

  constructor(child, port) {
    this.child = child;
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  stop() {
    return new Promise((resolve) => {
      this.child.on('exit', resolve);
      this.child.kill('SIGINT');
    });
  }
}

/** Forwards connections, and breaks them on request. */
export class Proxy {
  static async start(port) {
    const proxy = new Proxy(port);
    await new Promise((resolve) => proxy.listener.listen(0, '127.0.0.1', resolve));
    proxy.url = `http://127.0.0.1:${proxy.listener.address().port}`;
    return proxy;
  }

  constructor(port) {
    this.open = new Set();
    /** Bytes from a client after which its connection breaks. */
    this.breakAfterBytes = Infinity;
    this.listener = net.createServer((client) => this.forward(client, net.connect(port, '127.0.0.1')));
  }

  forward(client, server) {
    const end = () => { client.destroy(); server.destroy(); this.open.delete(end); };
    this.open.add(end);
    let bytes = 0;
    client.on('data', (data) => {
      bytes += data.length;
      if (bytes > this.breakAfterBytes) end();
    });
    for (const [from, to] of [[client, server], [server, client]]) {
      from.pipe(to);
      from.on('error', end);
      from.on('close', end);
    }
  }

  breakAll() {
    for (const end of [...this.open]) end();
  }

  stop() {
    this.breakAll();
    this.listener.close();
  }
}
