// Looks at pages in a real browser: node check.mjs CHROMIUM PAGE.html [SCREENSHOTS_FOLDER]
// Prints one JSON object: what the console said, what was requested, axe-core's and html-validate's findings, widths,
// whether a fold opens by keyboard and an anchor of the matrix leads to its detail, losses seen without scrolling,
// rows before and after the last filter, the size and the pages of the PDF.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { HtmlValidate } from "html-validate";

const [executablePath, file, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const address = pathToFileURL(file).href;
const said = { console: [], requests: [], axe: [], overflow: [], html: [] };

const validator = new HtmlValidate({ extends: ["html-validate:recommended"], rules: { "no-inline-style": "off", "long-title": "off" } });
const checked = await validator.validateString(readFileSync(file, "utf8"));
for (const message of checked.results.flatMap((result) => result.messages)) said.html.push(`${message.line}: ${message.ruleId}: ${message.message}`);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
for (const width of [1280, 360]) {
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
    const page = await context.newPage();
    page.on("console", (message) => said.console.push(message.text()));
    page.on("pageerror", (error) => said.console.push(String(error)));
    page.on("request", (request) => { if (request.url() !== address && !request.url().startsWith("data:")) said.requests.push(request.url()); });
    await page.goto(address);
    const [content, view] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    if (content > view) said.overflow.push(`${width}: ${content}`);
    if (folder) await page.screenshot({ path: `${folder}/${width}-${colorScheme}.png`, fullPage: true });
    await page.evaluate(() => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run());
    for (const violation of violations) said.axe.push(`${width} ${colorScheme}: ${violation.id}: ${violation.nodes[0].html.slice(0, 160)} (${violation.nodes.length})`);
    if (width === 1280 && colorScheme === "light") {
      await page.goto(address);
      const fold = page.locator("details:not([open]) > summary").first();
      if (await fold.count()) {
        const handle = await fold.elementHandle();
        await handle.focus();
        await page.keyboard.press("Enter");
        said.opened = await handle.evaluate((summary) => summary.parentElement.open);
      }
      await page.goto("about:blank");
      await page.goto(address);
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
      await page.evaluate(() => window.scrollTo(0, 0));
      said.seen = await page.evaluate(() => [...document.querySelectorAll(".losses a.m")].filter((mark) => mark.getBoundingClientRect().bottom < 800).length);
      const choice = page.locator("input[id]").last();
      if (await choice.count()) {
        const rows = () => page.evaluate(() => [...document.querySelectorAll("tr[data-lost]")].filter((row) => row.checkVisibility()).length);
        said.filtered = [await rows()];
        await choice.check();
        said.filtered.push(await rows());
        await page.goto("about:blank");
        await page.goto(address);
      }
      const pdf = await page.pdf({ path: folder ? `${folder}/page.pdf` : undefined, format: "A4" });
      said.pdf = pdf.length;
      said.pages = pdf.toString("latin1").match(/\/Type \/Page\b/g).length;
    }
    await context.close();
  }
}
await browser.close();
console.log(JSON.stringify(said));
