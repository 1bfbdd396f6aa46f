// What a page does beyond being read: it sorts and filters tables and lists, marks the part that is read, and keeps colours.
// Its text is a part of the page's policy, by its SHA-256. It sets no markup: texts stay texts.
'use strict';

// ── colours ─────────────────────────────────────────────────────────────────────────────────────────────────────────
const THEME = 'mountlab-theme';

const kept = () => { try { return localStorage.getItem(THEME); } catch { return null; } };
const keep = name => { try { localStorage.setItem(THEME, name); } catch { /* no storage: only this page, then */ } };

// Before the first paint; the switch itself is not there yet.
document.documentElement.dataset.theme = kept() ?? 'auto';

function keepTheme() {
  const radios = [...document.querySelectorAll('.theme input')];
  for (const radio of radios) {
    radio.checked = radio.value === (kept() ?? 'auto');
    radio.addEventListener('change', () => keep(radio.value));
  }
  delete document.documentElement.dataset.theme;
}

// ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────
const MISSING = new Set(['', 'n/a', 'none', 'not known', 'not in the sweep', 'not measured', 'no interval']);
const PREFIXES = {
  n: 1e-9, 'µ': 1e-6, 'μ': 1e-6, m: 1e-3, '': 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50,
};
const WHOLE = { min: 60, h: 3600, d: 86400, '%': 0.01, '': 1 };
const AMOUNT = /^([+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|∞))\s*((?:[nµμmkKMGTP]i?)?(?:B\/s|B|1\/s|\/s|IOPS|s)|min|h|d|%|×|)(?=$|[\s,\]–[])/;
const COLLATOR = new Intl.Collator('en', { numeric: true });

// What a cell is sorted by: its words; of one that has a small line below a figure, the figure; or what it says itself.
function wordsOf(cell) {
  if ('sort' in cell.dataset) return cell.dataset.sort;
  const copy = cell.cloneNode(true);
  const extras = copy.querySelectorAll('small, .mark');
  for (const extra of extras) if (copy.textContent.trim() !== extra.textContent.trim()) extra.remove();
  return copy.textContent.replace(/\u2212/g, '-').replace(/(\d)[\u2009\u202f](?=\d)/g, '$1')
    .replace(/[\s\u2007\u2008\u00a0]+/g, ' ').trim();
}

const factor = unit => WHOLE[unit] ?? PREFIXES[unit.replace(/(B\/s|B|1\/s|\/s|IOPS|s|×)$/, '')] ?? 1;

// The number that a text begins with, in base units ('2 min 5 s' is 125); NaN where it begins with none.
function numberOf(text) {
  let rest = text.replace(/^[<>≤≥≈~±[\s]+/, ''), sum = NaN;
  for (let found; (found = AMOUNT.exec(rest)); rest = rest.slice(found[0].length).trim()) {
    const value = (found[1].includes('∞') ? Infinity * (found[1][0] === '-' ? -1 : 1) : Number(found[1])) * factor(found[2]);
    sum = Number.isNaN(sum) ? value : sum + value;
    if (!found[2] || found[2] === '%') break;
  }
  return sum;
}

// Sizes inside of words, as in 'fio-read bs=4KiB', by what they are.
const inBytes = text => text.replace(/(\d+(?:\.\d+)?)\s?([KMGTP]i)B\b/g, (_, value, prefix) => String(value * PREFIXES[prefix]));

function comparing(rows, column, numeric, direction) {
  const keys = new Map(rows.map(row => {
    const text = inBytes(wordsOf(row.cells[column]));
    const number = numeric ? numberOf(text) : NaN;
    return [row, { text, number, missing: numeric ? Number.isNaN(number) : MISSING.has(text) }];
  }));
  return (a, b) => {
    const [x, y] = [keys.get(a), keys.get(b)];
    if (x.missing || y.missing) return x.missing - y.missing;
    if (!numeric) return direction * COLLATOR.compare(x.text, y.text);
    return x.number === y.number ? 0 : direction * (x.number < y.number ? -1 : 1);
  };
}

function sortable(table) {
  const heads = [...table.querySelectorAll('thead th')];
  const groups = [...table.tBodies].map(body => ({ body, rows: [...body.rows].filter(row => !row.matches('.group')) }));
  const all = groups.flatMap(group => group.rows);
  if (!groups.some(group => group.rows.length > 1)) return;
  heads.forEach((head, column) => {
    if (head.matches('.unsorted')) return;
    const isNumeric = () => head.matches('.number, .interval')
      || !all.some(row => { const text = wordsOf(row.cells[column]); return !MISSING.has(text) && Number.isNaN(numberOf(text)); });
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const next = { ascending: 'descending', descending: null }[head.ariaSort] ?? (head.ariaSort ? null : 'ascending');
      heads.forEach(each => each.removeAttribute('aria-sort'));
      if (next) head.setAttribute('aria-sort', next);
      const numeric = next && isNumeric();
      for (const { body, rows } of groups) {
        body.append(...(next ? [...rows].sort(comparing(rows, column, numeric, next === 'ascending' ? 1 : -1)) : rows));
      }
    });
  });
}

// A field above a table that leaves the rows with all of the words typed into it, in whatever column.
function narrowing(box) {
  const [bar, search, status] = ['.narrow', 'input', '[role=status]'].map(which => box.querySelector(which));
  const rows = [...box.querySelectorAll('tbody tr:not(.group)')];
  const texts = new Map(rows.map(row => [row, [...row.cells].map(wordsOf).join(' ').toLowerCase()]));
  const apply = () => {
    const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !asked.every(word => texts.get(row).includes(word));
    const fit = rows.filter(row => !row.hidden).length;
    status.textContent = asked.length ? `${fit} of ${rows.length} shown` : '';
  };
  search.addEventListener('input', apply);
  bar.hidden = false;
}

// ── lists ───────────────────────────────────────────────────────────────────────────────────────────────────────────
const AT_ONCE = 300;  // rows of a list that are laid out: of thousands all at once would take seconds (style.css, too)

function filterable(bar) {
  const table = document.querySelector('.entries');
  const texts = new Map([...table.querySelectorAll('tbody tr')].map(row =>
    [row, [row.textContent, ...Object.values(row.dataset)].join(' ').toLowerCase()]));
  const [status, search, clear] = ['[role=status]', 'input', 'button'].map(which => bar.querySelector(which));
  const choices = [...bar.querySelectorAll('select')];
  const more = document.createElement('button');
  more.type = 'button';
  more.className = 'more';
  table.after(more);
  let room = AT_ONCE;
  const apply = () => {
    const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let fit = 0;
    for (const row of table.querySelectorAll('tbody tr')) {
      const has = choice => [row.dataset[choice.name], ...row.dataset[choice.name].split(' ')].includes(choice.value);
      const fits = asked.every(word => texts.get(row).includes(word)) && choices.every(choice => !choice.value || has(choice));
      fit += fits;
      row.hidden = !fits || fit > room;
    }
    const narrowed = fit < texts.size || asked.length > 0 || choices.some(choice => choice.value);
    const all = narrowed ? `${fit} of ${texts.size}` : `${texts.size} in all`;
    status.textContent = fit > room ? `${all}, the first ${room} shown` : narrowed ? `${all} shown` : all;
    clear.hidden = !narrowed;
    more.hidden = fit <= room;
    more.textContent = `Show ${Math.min(AT_ONCE, fit - room)} more`;
  };
  const restart = () => { room = AT_ONCE; apply(); };
  bar.addEventListener('input', restart);
  table.tHead.addEventListener('click', apply);
  more.addEventListener('click', () => { room += AT_ONCE; apply(); });
  clear.addEventListener('click', () => {
    for (const each of [search, ...choices]) each.value = '';
    restart();
    search.focus();
  });
  bar.hidden = false;
  restart();
  table.classList.add('ready');
}

// ── contents ────────────────────────────────────────────────────────────────────────────────────────────────────────
function followed(contents) {
  const links = new Map([...contents.querySelectorAll('a')].map(link => [document.getElementById(link.hash.slice(1)), link]));
  const mark = () => {
    const above = [...links.keys()].filter(heading => heading.getBoundingClientRect().top < innerHeight / 3);
    for (const link of links.values()) link.removeAttribute('aria-current');
    if (above.length) links.get(above.at(-1)).setAttribute('aria-current', 'true');
  };
  addEventListener('scroll', mark, { passive: true });
  mark();
}

document.addEventListener('DOMContentLoaded', () => {
  keepTheme();
  document.querySelectorAll('table').forEach(sortable);
  document.querySelectorAll('.narrowed').forEach(narrowing);
  document.querySelectorAll('.filters').forEach(filterable);
  document.querySelectorAll('.contents').forEach(followed);
});
