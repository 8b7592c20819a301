/**
 * Fastify's option for a server with compilers of schemas of its own (`setValidatorCompiler`, `setSerializerCompiler`).
 * Without it Fastify loads its compilers as well, for each server.
 */
export const ownCompilers = {
  compilersFactory: { buildValidator: refuse, buildSerializer: refuse },
};

function refuse(): never {
  throw new Error('This server has compilers of schemas of its own');
}
