"use strict";
(() => {
  const asked = JSON.parse(document.getElementById("asked").textContent);
  const said = document.getElementById("said");
  const yes = document.getElementById("yes");
  const no = document.getElementById("no");

  const bytes = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

  function tell(words, kind) {
    said.textContent = words;
    said.className = kind;
  }

  function enable(on) {
    yes.disabled = no.disabled = !on;
  }

  async function send(answer) {
    const reply = await fetch("/answer", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Page": asked.page },
      body: JSON.stringify(answer),
      credentials: "omit",
      cache: "no-store",
    });
    if (!reply.ok) throw new Error("the command does not take this answer (" + reply.status + ")");
    const told = await reply.json();
    tell(told.text, told.good ? "good" : "error");
  }

  async function answer(make) {
    enable(false);
    let made;
    try {
      made = await make();
    } catch (fault) {
      // The key was not there, or the person let the browser's question pass: the page still waits.
      tell(fault.message, "error");
      enable(true);
      return;
    }
    try {
      await send(made);
    } catch (fault) {
      tell("No answer from the command that opened this page: " + fault.message, "error");
    }
  }

  async function sign() {
    tell("Touch your key now.", "");
    const made = await navigator.credentials.get({
      publicKey: {
        challenge: bytes(asked.challenge),
        rpId: asked.party,
        allowCredentials: asked.credential ? [{ type: "public-key", id: bytes(asked.credential) }] : [],
        userVerification: asked.pin ? "required" : "preferred",
        timeout: asked.milliseconds,
      },
    });
    return {
      authenticatorData: text(made.response.authenticatorData),
      clientDataJSON: text(made.response.clientDataJSON),
      signature: text(made.response.signature),
    };
  }

  async function register() {
    tell("Touch the key that you want to use.", "");
    const made = await navigator.credentials.create({
      publicKey: {
        challenge: bytes(asked.challenge),
        rp: { id: asked.party, name: "workpacket" },
        user: { id: bytes(asked.user), name: asked.person, displayName: asked.person },
        pubKeyCredParams: [{ type: "public-key", alg: -7 }],
        authenticatorSelection: { userVerification: "preferred", residentKey: "discouraged" },
        attestation: "none",
        timeout: asked.milliseconds,
      },
    });
    return {
      authenticatorData: text(made.response.getAuthenticatorData()),
      clientDataJSON: text(made.response.clientDataJSON),
    };
  }

  yes.addEventListener("click", () => answer(asked.kind === "touched" ? sign : register));
  no.addEventListener("click", () => answer(async () => ({ declined: true })));
  if (location.origin !== asked.origin) tell("This page works at " + asked.origin + " only.", "error");
  else if (!window.PublicKeyCredential) tell("This browser cannot ask a security key.", "error");
  else enable(true);
})();
