/* SPDX-License-Identifier: Apache-2.0
 *
 * The style of the report and of the live page, and the script of the live page: it fetches the body every
 * second and shows when the server no longer answers.
 */
#ifndef LEAT_DOCTOR_STYLE_H
#define LEAT_DOCTOR_STYLE_H

static const char leat__report_style[] =
    ":root{--bg:#fafaf7;--fg:#22303a;--dim:#6b7a84;--card:#fff;--line:#dfe4e6;--c0:#2374ab;"
    "--c1:#c98b1b;--c2:#7a5bb0;--c3:#3f9b6c;--bad:#cf4436;--warn:#d08a1d;--fine:#3f9b6c}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14191d;--fg:#dfe6ea;--dim:#8d9aa3;--card:#1c2328;"
    "--line:#303a41;--c0:#5aa9e0;--c1:#e0ad50;--c2:#a98be0;--c3:#68c795;--bad:#ef7265}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);"
    "font:15px/1.45 system-ui,sans-serif}header,main{max-width:1200px;margin:auto;padding:0 20px}"
    "header{display:flex;align-items:baseline;gap:14px;padding-top:18px}h1{font-size:20px;margin:0}"
    ".origin{max-width:1200px;margin:4px auto 0;padding:0 20px;color:var(--dim);font-size:13px;"
    "overflow-wrap:anywhere}"
    "h2{font-size:14px;margin:0 0 8px;color:var(--dim);font-weight:600}#state{color:var(--fine);"
    "font-size:13px}#state.gone{color:var(--bad)}section{background:var(--card);border:1px solid "
    "var(--line);border-radius:8px;padding:14px 16px;margin:14px 0}.verdict{border-left:6px solid "
    "var(--dim)}.verdict.fine{border-left-color:var(--fine)}.verdict.warning{border-left-color:"
    "var(--warn)}.verdict.critical{border-left-color:var(--bad)}.verdict p{font-size:19px;margin:0 0 4px}"
    "small{color:var(--dim);display:block}.pair{display:grid;grid-template-columns:1fr 1fr;gap:14px}"
    ".pair section{margin:0}.plots div{display:grid;grid-template-columns:1fr 1fr;gap:10px 18px}"
    "@media(max-width:800px){.pair,.plots div{grid-template-columns:1fr}}figure{margin:0}"
    "figcaption{font-size:13px}.key{font-size:12px;margin-left:8px;white-space:nowrap}"
    ".key::before{content:'';"
    "display:inline-block;width:10px;height:3px;background:currentColor;margin-right:4px;"
    "vertical-align:middle}.key.c0{color:var(--c0)}.key.c1{color:var(--c1)}.key.c2{color:var(--c2)}"
    ".key.c3{color:var(--c3)}.key.bad{color:var(--bad)}svg{width:100%;height:auto;display:block}"
    "svg text{fill:var(--dim);font-size:11px}.grid{stroke:var(--line);stroke-width:1}"
    "polyline{fill:none;stroke-width:1.8}polyline.c0{stroke:var(--c0)}polyline.c1{stroke:var(--c1)}"
    "polyline.c2{stroke:var(--c2)}polyline.c3{stroke:var(--c3)}polyline.bad{stroke:var(--bad)}"
    "table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:400;white-space:nowrap;"
    "padding:3px 10px 3px 0;width:1%}td{padding:3px 0}td.num{text-align:right;white-space:nowrap;"
    "padding-left:10px;width:1%;font-variant-numeric:tabular-nums}.bar i{display:block;height:14px;"
    "border-radius:3px;min-width:1px}i.c0{background:var(--c0)}i.c1{background:var(--c1)}"
    "i.c2{background:var(--c2)}i.c3{background:var(--c3)}i.bad{background:var(--bad)}"
    ".remedies td{vertical-align:top;border-top:1px solid var(--line);padding:7px 0}.gain{width:80px;"
    "font-weight:600;color:var(--c3)}ul{margin:0;padding-left:18px}code{font-size:13px}";

static const char leat__report_script[] =
    "const main=document.getElementById('main'),state=document.getElementById('state');"
    "let looks=0;async function look(){try{const r=await fetch('/body',{cache:'no-store'});"
    "if(!r.ok)throw r.status;main.innerHTML=await r.text();state.textContent='live';"
    "state.className='';document.body.dataset.looks=++looks}catch(e){state.textContent='ended';"
    "state.className='gone'}setTimeout(look,1000)}setTimeout(look,500);";

#endif
