'use strict';
(() => {
  const every = 5000;
  const find = id => document.getElementById(id);
  const what = find('what'), late = find('late');
  let paused = false, asking = false, seen = new Date(), on = null;

  // A cell is known by its place, so that it stays the one that is read out when the page is exchanged below it.
  const cellsOf = box => [...box.querySelectorAll('i')];
  const choose = (box, at) => {
    const list = cellsOf(box), cell = list[Math.max(0, Math.min(at, list.length - 1))];
    document.querySelectorAll('.cells .on').forEach(c => c.classList.remove('on'));
    on = cell ? { box: box.id, at: list.indexOf(cell) } : null;
    what.hidden = !cell;
    if (!cell) return;
    cell.classList.add('on');
    what.textContent = cell.title;
  };
  const leave = () => {
    on = null;
    what.hidden = true;
    document.querySelectorAll('.cells .on').forEach(c => c.classList.remove('on'));
  };
  document.addEventListener('click', e => {
    const cell = e.target.closest('.cells i');
    if (cell) choose(cell.parentElement, cellsOf(cell.parentElement).indexOf(cell)); else leave();
  });
  document.addEventListener('keydown', e => {
    const box = e.target.closest('.cells');
    if (e.key === 'Escape') leave();
    if (!box) return;
    const list = cellsOf(box), row = list.length && list.filter(c => c.offsetTop === list[0].offsetTop).length;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, Home: -list.length, End: list.length }[e.key];
    if (!step) return;
    e.preventDefault();
    choose(box, on && on.box === box.id ? on.at + step : 0);
  });

  // What a reader has opened, and where the keyboard is, outlasts the exchange.
  const exchange = next => {
    const open = [...document.querySelectorAll('details[open][id]')].map(d => d.id), focus = document.activeElement && document.activeElement.id;
    const moved = [...document.querySelectorAll('.scroll[id]')].map(s => [s.id, s.scrollLeft]);
    find('live').replaceWith(document.importNode(next, true));
    open.forEach(id => { const d = find(id); if (d) d.open = true; });
    moved.forEach(([id, left]) => { const s = find(id); if (s) s.scrollLeft = left; });
    if (focus && find(focus)) find(focus).focus({ preventScroll: true });
    if (on && find(on.box)) choose(find(on.box), on.at); else leave();
  };
  const refresh = async () => {
    if (paused || asking || document.hidden || !getSelection().isCollapsed) return;
    asking = true;
    try {
      const answer = await fetch(location.pathname, { headers: { Accept: 'text/html' }, cache: 'no-store' });
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('live');
      if (!answer.ok || !next) throw new Error(answer.status);
      exchange(next);
      seen = new Date();
      late.hidden = true;
    } catch {
      late.textContent = 'No answer since ' + seen.toLocaleTimeString() + ': what is below is of that time.';
      late.hidden = false;
    } finally {
      asking = false;
    }
  };

  const pause = document.createElement('button');
  pause.type = 'button';
  pause.textContent = 'Pause';
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.textContent = paused ? 'Go on' : 'Pause';
    refresh();
  });
  find('top').append(pause);
  document.addEventListener('visibilitychange', refresh);
  setInterval(refresh, every);
})();
