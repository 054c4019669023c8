// Looks at pages in a real browser: node check.mjs CHROMIUM PAGE.html...
// Prints one JSON object, what was seen by file name: what the console said, what was requested, axe-core's and
// html-validate's findings, widths that the page overflows, whether a fold opens by keyboard and an anchor of the matrix
// leads to its detail, losses seen without scrolling, rows before and after the last filter, the size and the pages of
// the PDF, and its headings that nothing follows on their page.  ATELIER_SCREENSHOTS names a folder for screenshots.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { HtmlValidate } from "html-validate";
import { getDocument } from "pdfjs-dist/legacy/build/pdf.mjs";
import { chromium } from "playwright-core";

const PART = 60; // articles that axe is given at once: it takes minutes for a page of several hundred
const WIDTHS = [320, 360, 640, 1280]; // 640 and 320 are what 1280 becomes at zooms of 200 and 400 %
const LINE = 24; // points: what is nearer to the top of a heading is the heading itself
const [executablePath, ...files] = process.argv.slice(2);
const folder = process.env.ATELIER_SCREENSHOTS;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const validator = new HtmlValidate({ extends: ["html-validate:recommended"],
  rules: { "no-inline-style": "off", "long-title": "off", "no-trailing-whitespace": "off" } }); // documents' lines may end so
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"] });

async function twoAtATime(jobs) {
  const results = [];
  const left = jobs.map((job, number) => [number, job]);
  const lane = async () => { for (let next; (next = left.shift()); ) results[next[0]] = await next[1](); };
  await Promise.all([lane(), lane()]);
  return results;
}

async function look(file) {
  const said = { console: [], requests: [] };
  said.html = (await validator.validateString(readFileSync(file, "utf8"))).results.flatMap((result) => result.messages)
    .map((message) => `${message.line}: ${message.ruleId}: ${message.message}`);
  const page = await open(file, said);
  const articles = await page.locator("article").count();
  const parts = Array.from({ length: Math.max(1, Math.ceil(articles / PART)) }, (_, number) => () => inspect(file, said, number));
  said.axe = (await twoAtATime(parts)).flat();
  said.overflow = await overflow(page, file);
  Object.assign(said, await use(page), await print(page, file));
  await page.context().close();
  return said;
}

async function open(file, said) {
  const address = pathToFileURL(file).href;
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: true });
  const page = await context.newPage();
  page.on("console", (message) => said.console.push(message.text()));
  page.on("pageerror", (error) => said.console.push(String(error)));
  page.on("request", (request) => { if (request.url() !== address && !request.url().startsWith("data:")) said.requests.push(request.url()); });
  await page.goto(address);
  return page;
}

// What axe says of a part of a page, all its folds open; of the first part, on a telephone and in the dark too.
async function inspect(file, said, number) {
  const page = await open(file, said);
  await page.evaluate(([from, to]) => {
    for (const items of ["article", "#matrice tbody tr"]) {
      [...document.querySelectorAll(items)].forEach((item, at) => { if (at < from || at >= to) item.remove(); });
    }
    if (from) document.querySelectorAll("#variantes, #documents").forEach((section) => section.remove());
    document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  }, [number * PART, (number + 1) * PART]);
  await page.evaluate(axe);
  const told = [];
  for (const [width, colorScheme, runOnly] of [[1280, "light"], [360, "light"], [1280, "dark", ["color-contrast"]]].slice(0, number ? 1 : 3)) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    const { violations } = await page.evaluate((rules) => window.axe.run({ resultTypes: ["violations"], ...(rules && { runOnly: rules }) }), runOnly);
    told.push(...violations.map((found) => `${width} ${colorScheme}: ${found.id}: ${found.nodes[0].html.slice(0, 160)} (${found.nodes.length})`));
  }
  await page.context().close();
  return told;
}

async function overflow(page, file) {
  const wide = [];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    const [content, view] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    if (content > view) wide.push(`${width}: ${content}`);
    for (const media of folder ? [{ colorScheme: "light" }, { colorScheme: "dark" }, { forcedColors: "active" }] : []) {
      await page.emulateMedia(media);
      await page.screenshot({ path: `${folder}/${basename(file, ".html")}-${width}-${Object.values(media)}.png`, fullPage: true });
      await page.emulateMedia({ colorScheme: null, forcedColors: null });
    }
  }
  return wide;
}

// The page as one uses it, by keyboard.
async function use(page) {
  const said = {};
  const address = page.url();
  const fold = page.locator("details:not([open]) > summary").first();
  if (await fold.count()) {
    const handle = await fold.elementHandle();
    await handle.focus();
    await page.keyboard.press("Enter");
    said.opened = await handle.evaluate((summary) => summary.parentElement.open);
  }
  await page.goto("about:blank");
  await page.goto(address);
  said.seen = await page.evaluate(() => [...document.querySelectorAll(".losses a.m")].filter((mark) => mark.getBoundingClientRect().bottom < 800).length);
  const mark = page.locator("#matrice a.m").last();
  if (await mark.count()) {
    const target = (await mark.getAttribute("href")).slice(1);
    await mark.focus();
    await page.keyboard.press("Enter");
    await page.waitForTimeout(300);
    said.followed = await page.evaluate((id) => {
      const box = document.getElementById(id).getBoundingClientRect();
      return box.height > 0 && box.top < window.innerHeight && box.bottom > 0;
    }, target);
  }
  const choice = page.locator("input[id]").last();
  if (await choice.count()) {
    const rows = () => page.evaluate(() => [...document.querySelectorAll("tr[data-lost]")].filter((row) => row.checkVisibility()).length);
    said.filtered = [await rows()];
    await choice.check();
    said.filtered.push(await rows());
  }
  await page.goto("about:blank");
  await page.goto(address);
  return said;
}

async function print(page, file) {
  const data = await page.pdf({ path: folder && `${folder}/${basename(file, ".html")}.pdf`, format: "A4", tagged: true, outline: true });
  const pdf = await getDocument({ data: new Uint8Array(data), verbosity: 0 }).promise;
  const headings = [await pdf.getOutline() ?? []].flat();
  const orphans = [];
  const texts = {};
  for (const heading of headings) { // the list grows with those below each
    headings.push(...heading.items);
    const [place, , x, y] = typeof heading.dest === "string" ? await pdf.getDestination(heading.dest) : heading.dest;
    const number = await pdf.getPageIndex(place);
    texts[number] ??= (await (await pdf.getPage(number + 1)).getTextContent()).items.filter((item) => item.str.trim());
    const column = texts[number].filter(({ transform: [, , , , left] }) => left > x - 9 && left < x + 240);
    if (!column.some(({ transform: [, , , , , bottom] }) => bottom < y - LINE)) orphans.push(`${number + 1}: ${heading.title}`);
  }
  return { pdf: data.length, pages: pdf.numPages, headings: headings.length, orphans };
}

const seen = await twoAtATime(files.map((file) => () => look(file)));
await browser.close();
console.log(JSON.stringify(Object.fromEntries(files.map((file, number) => [basename(file), seen[number]]))));
