// The playground: forms whose requests a worker carries out.

const TOOLS = ['analyze', 'record', 'plan'];
const BUG = 'This is a bug or a lack of memory; the command cardiograph has more memory. Please report it with the file.';
const byId = (id) => document.getElementById(id);

/** The module and the worker's text, loaded once. */
const loaded = (async () => {
  const [code, bytes] = await Promise.all(['worker.js', 'cardiograph.wasm'].map(async (name) => {
    const response = await fetch(name);
    if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
    return name.endsWith('js') ? response.text() : response.arrayBuffer();
  }));
  const worker = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  return { module: await WebAssembly.compile(bytes), worker };
})();

/** Carries out a request in a worker of its own; `stop` ends it. */
async function carryOut(request, file, onShare, stop) {
  const { module, worker: code } = await loaded;
  const worker = new Worker(code);
  try {
    return await new Promise((resolve, reject) => {
      stop.addEventListener('abort', () => reject('Stopped.'));
      if (stop.aborted) reject('Stopped.');
      worker.onerror = (event) => reject(`${event.message}. ${BUG}`);
      worker.onmessage = ({ data: { share, response, refusal, crash } }) => {
        if (share !== undefined) onShare(share);
        else if (response !== undefined) resolve(JSON.parse(response));
        else reject(refusal ?? `${crash}. ${BUG}`);
      };
      worker.postMessage({ module, request, file });
    });
  } finally {
    worker.terminate();
  }
}

/** Rows of the tables that warm up the module. */
const WARM_UP_ROWS = 20_000;
/** Ends the warm-up when somebody runs a tool. */
const warmUp = new AbortController();

/**
 * Analyses two tables and the example, and drops the results. Browsers optimise the functions of a module once they have
 * been used a while; after this, they are as fast for the first file as for the next ones.
 */
async function warmUpModule() {
  const table = (name, header, row) => new File([`${header}\n`,
    ...Array.from({ length: WARM_UP_ROWS }, (_, at) => `${row(at, at * 400, at * 400 + 200 + (at * 7919) % 150)}\n`)], name);
  const files = [
    table('times.csv', 'index,start_us,end_us', (at, start, end) => `${at},${start},${end}`),
    table('trace.csv', 'operation,file,offset,length,start_ns,end_ns',
      (at, start, end) => `write,0,${at * 512},512,${start}000,${end}000`),
  ];
  const example = await fetch(document.querySelector('[data-example]').dataset.example, { signal: warmUp.signal });
  if (example.ok) files.push(new File([await example.blob()], 'example.parquet'));
  for (const file of files) await carryOut({ command: 'analyze', name: file.name }, file, () => {}, warmUp.signal);
}

/** Quotes a word for a shell if it needs it. */
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function save(name, type, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** A tool: its section, its form and its result. */
class Tool {
  constructor(name) {
    this.name = name;
    this.section = byId(name);
    this.form = this.section.querySelector('form');
    this.state = this.section.querySelector('.state');
    this.result = this.section.querySelector('.result');
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.run();
    });
    for (const button of this.section.querySelectorAll('[data-save]')) {
      button.addEventListener('click', () => this.save(button.dataset.save));
    }
    const picker = this.form.querySelector('[data-file]');
    picker?.addEventListener('change', () => picker.files[0] && this.take(picker.files[0]));
  }

  /** Takes a file that was chosen or dropped. Options of the file before do not apply to it. */
  take(file) {
    this.file = file;
    for (const field of this.form.querySelectorAll('details [name]')) field.value = '';
    this.run();
  }

  /** Returns the values of the form. */
  values() {
    return Object.fromEntries([...new FormData(this.form)].filter(([, value]) => typeof value === 'string'));
  }

  async run() {
    this.stop?.abort();
    const stop = new AbortController();
    this.stop = stop;
    const request = this.request();
    if (!request) return;
    warmUp.abort();
    this.result.hidden = true;
    const bar = this.showProgress(stop);
    try {
      const response = await carryOut(request, this.file, (share) => { bar.value = share; }, stop.signal);
      if (this.stop !== stop) return;
      this.state.replaceChildren();
      this.response = response;
      this.result.hidden = false;
      this.section.querySelector('.shell').textContent = response.shell ?? this.shell(request);
      this.show(response);
    } catch (error) {
      if (this.stop === stop) this.say(typeof error === 'string' ? error : `The playground is incomplete: ${error.message}; build it again.`);
    }
  }

  showProgress(stop) {
    const bar = document.createElement('progress');
    bar.setAttribute('aria-label', 'Progress');
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Stop';
    button.addEventListener('click', () => stop.abort());
    this.state.replaceChildren(bar, button);
    return bar;
  }

  say(message) {
    const line = document.createElement('p');
    line.className = 'failure';
    line.textContent = message;
    this.state.replaceChildren(line);
    // A message that names an option shows its field.
    const details = this.form.querySelector('details');
    const isNamed = (field) => message.includes(`--${field.name.replace('_', '-')}`);
    if (details && [...details.querySelectorAll('[name]')].some(isNamed)) details.open = true;
  }

  save(kind) {
    const name = `cardiograph-${this.name}.${kind}`;
    save(name, kind === 'json' ? 'application/json' : 'text/html', this.response[kind]);
  }

  /** Returns the command with the options of a request. */
  shell(request) {
    const words = ['cardiograph', this.name, request.target || request.name];
    for (const [name, option] of [['rate', '--rate'], ['sample_bytes', '--sample-bytes'], ['buffer', '--buffer'], ['for', '--for'], ['seed', '--seed']]) {
      if (request[name]?.trim()) words.push(option, request[name].trim());
    }
    return words.map(quoted).join(' ');
  }
}

class Analyze extends Tool {
  constructor() {
    super('analyze');
    this.frame = this.section.querySelector('iframe');
    this.frame.addEventListener('load', () => {
      const { documentElement } = this.frame.contentDocument;
      const fit = () => { this.frame.style.height = `${documentElement.offsetHeight + 2}px`; };
      new ResizeObserver(fit).observe(documentElement);
    });
    const example = this.form.querySelector('[data-example]');
    example.addEventListener('click', async () => {
      const response = await fetch(example.dataset.example);
      if (response.ok) this.take(new File([await response.blob()], example.dataset.example));
      else this.say(`${example.dataset.example}: ${response.status} ${response.statusText}; build the playground again.`);
    });
  }

  request() {
    if (!this.file) {
      this.say('Choose a file first.');
      return null;
    }
    return { command: 'analyze', name: this.file.name, ...this.values() };
  }

  show({ html }) {
    this.frame.srcdoc = html;
  }
}

class Record extends Tool {
  constructor() {
    super('record');
    this.chart = new Chart(this.section.querySelector('canvas'));
    this.section.querySelector('[data-play]').addEventListener('click', () => this.play());
  }

  request() {
    const { card, board, ...values } = this.values();
    return { command: 'record', target: `sim:${card}@${board}`, ...values };
  }

  play() {
    this.chart.play(this.response.course, this.figures.buffer_bytes);
  }

  show({ json, course }) {
    const figures = JSON.parse(json).results[0];
    this.figures = figures;
    const longestUs = course.busy_us.reduce((most, [, us]) => Math.max(most, us), 0);
    const rate = (bytes) => `${(bytes / 1000).toLocaleString('en', { maximumSignificantDigits: 4 })} kB/s`;
    const time = (us) => (us >= 1e6 ? `${+(us / 1e6).toPrecision(3)} s` : `${+(us / 1000).toPrecision(3)} ms`);
    const count = (number) => number.toLocaleString('en');
    const rows = [
      ['Lost samples', count(figures.samples_lost), figures.samples_lost > 0 ? 'lost bad' : 'lost'],
      ['Written and compared', count(figures.samples_written)],
      ['Highest buffer level', `${+(figures.buffer_peak_bytes / 1024).toPrecision(3)} KiB of ${+(figures.buffer_bytes / 1024).toPrecision(6)} KiB`],
      ['Longest busy time of the card', longestUs ? time(longestUs) : 'below 5 ms'],
      ['Rate of the files', rate(figures.file_rate_bytes_per_s)],
      ['Highest rate with this buffer', rate(figures.sustained_bound_bytes_per_s)],
      ['A power cut loses at most', time(figures.at_risk_max_us)],
    ];
    this.section.querySelector('.figures').replaceChildren(...rows.map(([name, value, className]) => {
      const row = document.createElement('div');
      const [term, detail] = [document.createElement('dt'), document.createElement('dd')];
      term.textContent = name;
      detail.textContent = value;
      if (className) detail.className = className;
      row.append(term, detail);
      return row;
    }));
    this.showGaps(figures, count, time);
    this.chart.canvas.setAttribute('aria-label', `Buffer level over time: at most ${rows[2][1]}; ${rows[0][1]} samples lost`);
    this.play();
  }

  showGaps({ gaps, gaps_total: total }, count, time) {
    const shown = gaps.slice(0, 20);
    const list = document.createElement('ul');
    list.tabIndex = 0;
    list.setAttribute('aria-label', 'Gaps');
    list.replaceChildren(...shown.map((gap) => {
      const item = document.createElement('li');
      item.textContent = `at ${time(gap.at_us)}: ${count(gap.samples)} lost, starting at sample ${count(gap.first_sample)}`;
      return item;
    }));
    const rest = document.createElement('p');
    rest.textContent = total > shown.length ? `and ${count(total - shown.length)} more gaps` : '';
    this.section.querySelector('.gaps').replaceChildren(...(shown.length ? [list, rest] : []));
  }
}

class Plan extends Tool {
  constructor() {
    super('plan');
    const clear = this.form.querySelector('[data-clear]');
    clear.addEventListener('click', () => {
      this.file = undefined;
      this.form.querySelector('[data-file]').value = '';
      this.showSource();
      this.run();
    });
  }

  take(file) {
    this.file = file;
    this.showSource();
    this.run();
  }

  showSource() {
    this.form.querySelector('[data-clear]').hidden = !this.file;
    for (const label of this.form.querySelectorAll('[data-simulated]')) label.hidden = Boolean(this.file);
  }

  request() {
    const { card, board, ...values } = this.values();
    const source = this.file ? { name: this.file.name } : { target: `sim:${card}@${board}` };
    return { command: 'plan', ...source, ...values };
  }

  show({ text }) {
    this.section.querySelector('pre').textContent = text;
  }
}

const tools = { analyze: new Analyze(), record: new Record(), plan: new Plan() };

/** Shows the tool that the address names. */
function showTool() {
  const wanted = TOOLS.find((name) => location.hash === `#${name}`) ?? TOOLS[0];
  for (const name of TOOLS) {
    byId(name).hidden = name !== wanted;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === wanted) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  return tools[wanted];
}

/** Fills the lists of cards and boards. */
async function fillLists() {
  const { cards, boards } = await carryOut({ command: 'lists' }, undefined, () => {}, new AbortController().signal);
  const fill = (select, names, chosen) => {
    select.replaceChildren(...names.map(({ name, about }) => {
      const option = new Option(name, name, false, name === chosen);
      option.title = about;
      return option;
    }));
  };
  for (const select of document.querySelectorAll('[name=card]')) fill(select, cards, select.dataset.default);
  for (const select of document.querySelectorAll('[name=board]')) {
    fill(select, boards.filter(({ records }) => records || 'any' in select.dataset), 'esp32');
  }
}

for (const kind of ['dragover', 'drop']) {
  addEventListener(kind, (event) => {
    event.preventDefault();
    const [file, second] = event.dataTransfer?.files ?? [];
    const tool = tools[TOOLS.find((name) => !byId(name).hidden)];
    document.body.classList.toggle('dropping', kind === 'dragover');
    if (kind !== 'drop' || !file || !tool.form.querySelector('[data-file]')) return;
    if (second) {
      tool.say('Drop one file at a time.');
      return;
    }
    if (event.dataTransfer.items[0].webkitGetAsEntry()?.isDirectory) {
      tool.say(`${file.name}: is a directory; name the files in it`);
      return;
    }
    tool.form.querySelector('[data-file]').files = event.dataTransfer.files;
    tool.take(file);
  });
}
addEventListener('dragleave', () => document.body.classList.remove('dropping'));
addEventListener('hashchange', showTool);
showTool();
fillLists().then(
  // A warm-up that fails or is stopped changes no result.
  () => warmUpModule().catch(() => {}).finally(() => { document.body.dataset.warm = ''; }),
  (error) => showTool().say(`The playground is incomplete: ${error.message ?? error}; build it again.`),
);
