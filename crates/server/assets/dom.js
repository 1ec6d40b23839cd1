/** Making elements. Texts become text nodes, so a hostile name is only a name. */

/**
 * An element with properties and children. `class`, `for`, `role`, `aria-*` and `data-*` are set as attributes, `on*` as listeners.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on') && typeof value === 'function') {
      made.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else {
      made.setAttribute(name, value === true ? '' : String(value));
    }
  }
  made.append(...children);
  return made;
}

/**
 * All elements of a class that match a selector.
 * @template {Element} T
 * @param {string} selector
 * @param {new () => T} type
 * @param {ParentNode} [root]
 * @returns {T[]}
 */
export function all(selector, type, root = document) {
  return /** @type {T[]} */ ([...root.querySelectorAll(selector)].filter((found) => found instanceof type));
}

/**
 * The first element of a class that matches a selector.
 * @template {Element} T
 * @param {string} selector
 * @param {new () => T} type
 * @param {ParentNode} [root]
 * @returns {T | null}
 */
export function first(selector, type, root = document) {
  const found = root.querySelector(selector);
  return found instanceof type ? found : null;
}

/**
 * Calls `work` once after the calls have stopped for `milliseconds`.
 * @param {() => void} work
 * @param {number} milliseconds
 */
export function debounced(work, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}

/** Whether an event goes to a field that takes text, so that its keys are not commands. @param {Event} event */
export function inTextField(event) {
  const target = event.target;
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button', 'submit'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Copies a text, and says so on the button for a moment. @param {string} text @param {HTMLButtonElement} button @param {string} done */
export async function copy(text, button, done) {
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  button.textContent = done;
  setTimeout(() => (button.textContent = before), 1500);
}
