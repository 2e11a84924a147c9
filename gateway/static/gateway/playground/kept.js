// What the form holds, kept in this browser for the next visit. The form has no field for a key.

export class Kept {
  constructor(user) {
    this.name = `playground.${user}`;
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
      // Storage is full or forbidden: the form works without.
    }
  }
}
