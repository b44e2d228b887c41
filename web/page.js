// Enhances the list of a folder: sorting, keyboard, uploads, renaming, removal. Without this script it is plain HTML.
'use strict';

const folder = decodeURIComponent(location.pathname).replace(/\/+$/, '') || '/';
const url = (path) => path.split('/').map(encodeURIComponent).join('/');
const pathOf = (name) => url((folder === '/' ? '' : folder) + '/' + name);

/** Creates an element with properties and children; all text is set as text, never as HTML. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function bytesText(bytes) {
  let unit = 0;
  while (bytes >= 1000 && unit < 4) { bytes /= 1000; unit += 1; }
  const digits = unit === 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2;
  return `${bytes.toFixed(digits)} ${['B', 'kB', 'MB', 'GB', 'TB'][unit]}`;
}

/** Local time of the browser, with its zone at that date: 2026-11-29 18:04 +01:00. */
function timeText(s) {
  const time = new Date(s * 1000), eastMin = -time.getTimezoneOffset();
  const shifted = new Date(s * 1000 + eastMin * 60000).toISOString().slice(0, 16).replace('T', ' ');
  const digits = (number) => String(number).padStart(2, '0');
  const zone = digits(Math.floor(Math.abs(eastMin) / 60)) + ':' + digits(Math.abs(eastMin) % 60);
  return `${shifted} ${eastMin < 0 ? '-' : '+'}${zone}`;
}

const note = make('p', { id: 'note', role: 'status' });
function say(text, isBad = false) {
  note.textContent = text;
  note.className = isBad ? 'bad' : '';
}

/** Sends a request; throws the sentence of the server, and its status, if it refuses. */
async function send(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error('The connection to the server was lost; try again.');
  }
  if (!response.ok) {
    const error = new Error((await response.text()).trim() || response.statusText);
    throw Object.assign(error, { status: response.status });
  }
  return response;
}

const compare = {
  name: (a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }),
  size: (a, b) => (a.size ?? -1) - (b.size ?? -1),
  time: (a, b) => (a.time ?? 0) - (b.time ?? 0),
};
let entries = [];
let order = { key: 'name', sign: 1 };
let isReadOnly = true;

const body = make('tbody');
const heads = Object.keys(compare).map((key) => {
  const text = key[0].toUpperCase() + key.slice(1);
  const button = make('button', { type: 'button', onclick: () => sortBy(key) }, text);
  return make('th', { scope: 'col' }, button);
});
const table = make('table', { id: 'files' },
  make('thead', {}, make('tr', {}, ...heads, make('td'))), body);

function sortBy(key) {
  order = { key, sign: order.key === key ? -order.sign : 1 };
  show();
}

function show(focused) {
  heads.forEach((head, at) => {
    const isKey = Object.keys(compare)[at] === order.key;
    const direction = order.sign > 0 ? 'ascending' : 'descending';
    head.setAttribute('aria-sort', isKey ? direction : 'none');
    const text = head.firstChild.textContent.replace(/ [▲▼]$/, '');
    head.firstChild.textContent = text + (isKey ? (order.sign > 0 ? ' ▲' : ' ▼') : '');
  });
  // Folders stay in front.
  const rank = (entry) => (entry.type === 'dir' ? 0 : 1);
  entries.sort((a, b) => rank(a) - rank(b)
    || order.sign * compare[order.key](a, b) || compare.name(a, b));
  body.replaceChildren(...entries.map(row));
  if (entries.length === 0) body.append(make('tr', {}, make('td', { colSpan: 4, className: 'dim' }, 'This folder is empty.')));
  if (focused !== undefined) focusRow(focused);
}

function row(entry) {
  const { name, size, time, growing, unavailable } = entry;
  const isFolder = entry.type === 'dir';
  const label = name + (isFolder ? '/' : '');
  const path = pathOf(name);
  const tools = [];
  if (unavailable) {
    tools.push(make('span', { className: 'dim' }, unavailable));
  } else {
    tools.push(make('a', { className: 'act', href: path + (isFolder ? '?tar=1' : '?download=1'),
      'aria-label': `download ${label}` }, 'download'));
    if (!isReadOnly && !growing) {
      const tool = (text, action) => make('button', { type: 'button', onclick: () => action(entry),
        'aria-label': `${text} ${label}` }, text);
      tools.push(tool('rename', rename), tool('delete', remove));
    }
  }
  const title = unavailable ? label : make('a', { href: path, className: 'name' }, label);
  const line = make('tr', {}, make('td', {}, title), make('td', {}, isFolder ? '' : bytesText(size)),
    make('td', {}, growing ? make('span', { className: 'rec' }, 'recording') : time ? timeText(time) : ''),
    make('td', {}, ...tools));
  line.entry = entry;
  return line;
}

async function load(focused) {
  try {
    entries = await (await send(`/list?dir=${encodeURIComponent(folder)}`)).json();
    show(focused);
  } catch (error) {
    say(error.message, true);
  }
}

const links = () => [...body.querySelectorAll('a.name')];
function focusRow(name) {
  const all = links();
  const found = all.find((link) => link.closest('tr').entry.name === name);
  (found || all[0])?.focus();
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (document.querySelector('dialog[open]') || event.target.matches('input')) return;
  const all = links();
  const at = all.indexOf(document.activeElement);
  const entry = all[at]?.closest('tr').entry;
  const move = { ArrowDown: at + 1, ArrowUp: Math.max(at - 1, 0), Home: 0, End: all.length - 1 }[event.key];
  const isChange = entry && !isReadOnly && !entry.growing;
  if (move !== undefined && (at >= 0 || event.key.startsWith('Arrow'))) all[Math.min(move, all.length - 1)]?.focus();
  else if (event.key === 'Backspace' && folder !== '/') location.href = url(folder.replace(/\/[^/]*$/, '')) || '/';
  else if (event.key === 'F2' && isChange) rename(entry);
  else if (event.key === 'Delete' && isChange) remove(entry);
  else return;
  event.preventDefault();
});

/** Asks in a dialog; resolves to the text of the field, `true` without one, or `null` if cancelled. */
function ask(question, action, value) {
  const field = make('input', { value: value ?? '', 'aria-label': question, autocomplete: 'off' });
  const form = make('form', { method: 'dialog' }, make('p', {}, question), ...(value === undefined ? [] : [field]),
    make('p', { className: 'bar' }, make('button', { value: 'yes' }, action),
      make('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel')));
  const dialog = make('dialog', { 'aria-label': question }, form);
  document.body.append(dialog);
  dialog.showModal();
  if (value !== undefined) field.setSelectionRange(0, value.lastIndexOf('.') > 0 ? value.lastIndexOf('.') : value.length);
  return new Promise((resolve) => {
    dialog.onclose = () => {
      resolve(dialog.returnValue === 'yes' ? (value === undefined ? true : field.value) : null);
      dialog.remove();
    };
  });
}

/** Carries out a change, shows its sentence or the server's answer, and lists the folder again. */
async function change(action, focused) {
  try {
    say(await action());
  } catch (error) {
    say(error.message, true);
  }
  await load(focused);
}

async function rename({ name }) {
  const to = await ask(`Rename ${name} to`, 'Rename', name);
  if (!to || to === name) return focusRow(name);
  const move = (overwrite) => send(pathOf(name), { method: 'MOVE', headers: { Destination: pathOf(to), Overwrite: overwrite } });
  await change(async () => {
    try {
      await move('F');
    } catch (error) {
      if (error.status !== 412) throw error;
      if (!await mayReplace(to)) return '';
      await move('T');
    }
    return `Renamed ${name} to ${to}.`;
  }, to);
}

/** Asks whether to replace a file; throws for anything else. */
async function mayReplace(name) {
  await load();
  // On a card, names that differ only in case are the same.
  const taken = entries.find((entry) => entry.name === name)
    ?? entries.find((entry) => entry.name.toLowerCase() === name.toLowerCase());
  if (taken?.type !== 'file') throw new Error(`${name} exists already; choose another name.`);
  return ask(`Replace ${taken.name}?`, 'Replace');
}

async function remove({ name, type }) {
  const contents = type === 'dir' ? ' and everything in it' : '';
  if (!await ask(`Delete ${name}${contents}? This cannot be undone.`, 'Delete')) return focusRow(name);
  const next = entries[entries.findIndex((entry) => entry.name === name) + 1];
  await change(async () => {
    await send(pathOf(name), { method: 'DELETE' });
    return `Deleted ${name}.`;
  }, next?.name);
}

async function newFolder() {
  const name = await ask('Name of the new folder', 'Create', '');
  if (!name) return;
  await change(async () => {
    await send(pathOf(name), { method: 'MKCOL' });
    return `Created ${name}.`;
  }, name);
}

// Uploads, one at a time: the card is slower than the network.
const PUT_TRIES_MAX = 20;
const uploads = make('div', { id: 'uploads' });
let queue = Promise.resolve();
function upload(files) {
  for (const file of files) queue = queue.then(() => uploadOne(file));
}

async function uploadOne(file) {
  const exists = entries.some((entry) => entry.name === file.name);
  if (exists && !await ask(`Replace ${file.name}?`, 'Replace')) return;
  const meter = make('progress', { max: Math.max(file.size, 1), value: 0, 'aria-label': `Upload of ${file.name}` });
  const text = make('span', {}, file.name);
  const line = make('p', { className: 'bar' }, meter, text);
  uploads.append(line);
  const failure = await put(file, exists, (sent) => {
    meter.value = sent;
    text.textContent = `${file.name}: ${bytesText(sent)} of ${bytesText(file.size)}`;
  });
  if (failure === null) {
    line.remove();
    say(`Uploaded ${file.name}.`);
    return load();
  }
  meter.remove();
  text.textContent = `${file.name}: ${failure}`;
  text.className = 'bad';
  const again = () => { line.remove(); upload([file]); };
  line.append(make('button', { type: 'button', onclick: again }, 'Upload again'),
    make('button', { type: 'button', onclick: () => line.remove() }, 'Dismiss'));
}

/** Uploads a file; returns `null`, or the reason of the failure. */
async function put(file, replaces, onProgress) {
  for (let tries = 1; ; tries += 1) {
    const [status, failure] = await putOnce(file, replaces, onProgress);
    // A broken upload keeps its place until the server notices that the connection is gone.
    if (status !== 503 || tries === PUT_TRIES_MAX) return failure;
    await new Promise((resume) => setTimeout(resume, 1000));
  }
}

/** Uploads a file; resolves to the status, and to `null` or the reason of the failure. */
function putOnce(file, replaces, onProgress) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('PUT', pathOf(file.name));
    if (!replaces) request.setRequestHeader('If-None-Match', '*');
    let sent = 0;
    request.upload.onprogress = (event) => onProgress(sent = event.loaded);
    request.onload = () => resolve([request.status, request.status < 300 ? null : request.responseText.trim()]);
    request.onerror = () => resolve([0, `the connection was lost after ${bytesText(sent)}; `
      + 'nothing was stored, and an older file of this name is unchanged.']);
    request.send(file);
  });
}

function receiveDrops() {
  const isOver = (state) => document.body.classList.toggle('drop', state);
  document.addEventListener('dragover', (event) => { event.preventDefault(); isOver(true); });
  document.addEventListener('dragleave', (event) => { if (!event.relatedTarget) isOver(false); });
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    isOver(false);
    upload(event.dataTransfer.files);
  });
}

/** Fills a section with sessions or days, each one download. */
async function groups(section, path, nameOf) {
  const rows = await (await send(path)).json();
  const cells = (group) => [nameOf(group), `${group.recordings} files`, bytesText(group.size),
    group.lost ? `${group.lost} lost` : 'none lost'].map((text) => make('td', {}, text));
  const download = (group) => make('td', {}, make('a', { href: group.url, download: '', className: 'act',
    'aria-label': `download ${nameOf(group)}` }, 'download'));
  section.replaceChildren(make('table', {}, make('tbody', {},
    ...rows.reverse().map((group) => make('tr', {}, ...cells(group), download(group))))));
  if (rows.length === 0) section.replaceChildren('There are no recordings.');
}

function groupList(title, path, nameOf) {
  const section = make('div', { className: 'wide' }, 'Loading');
  const details = make('details', {}, make('summary', {}, title), section);
  details.ontoggle = () => {
    if (details.open) groups(section, path, nameOf).catch((error) => { section.textContent = error.message; });
  };
  return details;
}

function crumbs() {
  const names = folder.split('/').filter(Boolean);
  const link = (name, at) => [' / ', make('a', { href: url('/' + names.slice(0, at + 1).join('/')) }, name)];
  return make('h1', {}, make('a', { href: '/' }, 'Card'), ...names.flatMap(link));
}

function tools() {
  const picker = make('input', { type: 'file', multiple: true, hidden: true, id: 'picker',
    onchange: () => { upload([...picker.files]); picker.value = ''; } });
  const all = make('a', { href: '?tar=1' }, 'Download folder');
  if (isReadOnly) return make('div', { className: 'bar' }, all, make('span', { className: 'dim' }, 'read-only'));
  receiveDrops();
  return make('div', { className: 'bar' }, make('button', { type: 'button', onclick: () => picker.click() }, 'Upload files'),
    picker, make('button', { type: 'button', onclick: newFolder }, 'New folder'), all,
    make('span', { className: 'dim' }, 'or drop files here'));
}

/**
 * What the application adds: buttons, a table and sentences. Buttons and the frame of the table remain when they are updated:
 * one that is replaced while it is pressed gets no click, and loses the focus.
 */
const actions = make('div', { className: 'bar' });
const wide = make('div', { className: 'wide', tabIndex: 0, role: 'group', 'aria-label': 'Table' });
const story = make('ul');
const application = make('section', { id: 'application', 'aria-label': 'Device', hidden: true }, actions, wide, story);

function showApplication(items) {
  application.hidden = items.length === 0;
  const wanted = items.filter((item) => item.action);
  while (actions.children.length > wanted.length) actions.lastChild.remove();
  wanted.forEach((item, at) => {
    const button = actions.children[at] ?? actions.appendChild(make('button', { type: 'button' }));
    Object.assign(button, { disabled: isReadOnly, onclick: () => act(item), textContent: item.text,
      ariaPressed: item.chosen === null ? null : String(item.chosen) });
  });
  const [columns, ...lines] = items.filter((item) => item.row).map((item) => item.row.split('\t'));
  const cells = (tag, line) => line.map((cell, at) => make(at === 0 ? 'th' : tag,
    tag === 'th' ? {} : at === 0 ? { scope: 'row' } : { 'data-label': columns[at] }, cell));
  wide.replaceChildren(make('table', {},
    ...(columns ? [make('thead', {}, make('tr', {}, ...cells('th', columns)))] : []),
    make('tbody', {}, ...lines.map((line) => make('tr', {}, ...cells('td', line))))));
  story.replaceChildren(...items.filter((item) => !item.action && !item.row).map((item) => make('li', {}, item.text)));
}

async function act({ action }) {
  try {
    await send(`/record?action=${action}`, { method: 'POST' });
    say('');
  } catch (error) {
    say(error.message, true);
  }
  await watchApplication();
  restartLive();
}

async function watchApplication() {
  try {
    showApplication((await (await send('/status')).json()).application);
  } catch {
    // Without power, a device does not answer; the last state remains.
  }
}

async function start() {
  const status = await (await send('/status')).json();
  isReadOnly = status.server.read_only;
  const space = status.storage?.free != null
    ? `${bytesText(status.storage.free)} of ${bytesText(status.storage.size)} free` : '';
  const main = make('main', {}, crumbs());
  if (status.recorder) main.append(liveView());
  if (status.application.length > 0) {
    main.append(application);
    showApplication(status.application);
    setInterval(watchApplication, 1000);
  }
  main.append(tools(), note, uploads, table, make('p', { className: 'dim' }, space),
    groupList('Sessions', '/sessions', (group) => group.session || group.first),
    groupList('Days', '/days', (group) => group.day),
    make('p', { className: 'dim' }, '↑ ↓ move · Enter opens · Backspace goes up · F2 renames · Delete deletes'));
  document.body.replaceChildren(main);
  await load();
}
// If the first request fails, the plain list remains.
start();
