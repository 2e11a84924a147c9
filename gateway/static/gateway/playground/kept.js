// What a page keeps in this browser for the next visit. It has no field for a key.

export class Kept {
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
      // Storage is full or forbidden: the page works without.
    }
  }
}
