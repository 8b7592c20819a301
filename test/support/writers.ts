/** A key of all scopes in an organization, as verbs that write take it. */
export const anyWriter = (organizationId = 'default') => ({ organizationId, scopes: ['*'] });
