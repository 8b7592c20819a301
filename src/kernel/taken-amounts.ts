/** How much of a resource is taken, in all and by each organization. Keeps nothing of an organization that has none. */
export class TakenAmounts {
  readonly #byOrganization = new Map<string, number>();
  #all = 0;

  get all(): number {
    return this.#all;
  }

  of(organizationId: string): number {
    return this.#byOrganization.get(organizationId) ?? 0;
  }

  /** Takes an amount; gives back a negative one. */
  add(organizationId: string, amount: number): void {
    const left = this.of(organizationId) + amount;
    this.#all += amount;
    if (left > 0) this.#byOrganization.set(organizationId, left);
    else this.#byOrganization.delete(organizationId);
  }
}
