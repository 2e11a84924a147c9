// Keeps the state of a page in this browser for the next visit. No key of an API is part of it.

export class BrowserStorage {
  constructor(name) {
    this.name = name;
  }

  read() {
    try {
      return JSON.parse(localStorage.getItem(this.name)) ?? {};
    } catch {
      return {};
    }
  }

  write(state) {
    try {
      localStorage.setItem(this.name, JSON.stringify(state));
    } catch {
      // The storage is full or forbidden; the page works without it.
    }
  }
}
