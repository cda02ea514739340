"""Broker configs of authorization, delegation tokens, SASL and TLS.

Its rows are read by `fencepost.broker.configs.tables.read`.
"""

from typing import Final

TABLE: Final = """\
authorizer.class.name STRING "" inert:acl
    Class that decides who may do what.
connection.failed.authentication.delay.ms INT 100 >=0 inert:sasl
    How long a failed authentication's connection stays open, in ms.
connections.max.reauth.ms LONG 0 inert:sasl
    How long an authenticated session lasts, in ms; 0 for ever.
delegation.token.expiry.check.interval.ms LONG 3600000 >=1 inert:tokens
    How often expired delegation tokens are removed, in ms.
delegation.token.expiry.time.ms LONG 86400000 >=1 inert:tokens
    How long a token is valid without renewal, in ms.
delegation.token.max.lifetime.ms LONG 604800000 >=1 inert:tokens
    How long a token can be renewed, in ms.
delegation.token.secret.key PASSWORD - inert:tokens
    Key that tokens are signed with.
sasl.client.callback.handler.class CLASS - inert:sasl
    Class that answers callbacks of SASL clients.
sasl.enabled.mechanisms LIST GSSAPI per-broker inert:sasl
    SASL mechanisms that are offered.
sasl.jaas.config PASSWORD - per-broker inert:sasl
    JAAS login of SASL connections.
sasl.kerberos.kinit.cmd STRING /usr/bin/kinit per-broker inert:sasl
    Path of kinit.
sasl.kerberos.min.time.before.relogin LONG 60000 per-broker inert:sasl
    Shortest time between two refreshes of the login, in ms.
sasl.kerberos.principal.to.local.rules LIST DEFAULT per-broker inert:sasl
    Rules that shorten Kerberos principals to names.
sasl.kerberos.service.name STRING - per-broker inert:sasl
    Kerberos service that Kafka runs as.
sasl.kerberos.ticket.renew.jitter DOUBLE 0.05 per-broker inert:sasl
    Share of the renewal time that is random.
sasl.kerberos.ticket.renew.window.factor DOUBLE 0.8 per-broker inert:sasl
    Share of a ticket's life after which it is renewed.
sasl.login.callback.handler.class CLASS - inert:sasl
    Class that answers callbacks of the login.
sasl.login.class CLASS - inert:sasl
    Class that logs in.
sasl.login.connect.timeout.ms INT - inert:sasl
    How long to wait for a connection to the identity provider, in ms.
sasl.login.read.timeout.ms INT - inert:sasl
    How long to wait for the identity provider's answer, in ms.
sasl.login.refresh.buffer.seconds SHORT 300 per-broker inert:sasl
    How long before its expiry a credential must be renewed, in seconds.
sasl.login.refresh.min.period.seconds SHORT 60 per-broker inert:sasl
    Shortest time between two renewals, in seconds.
sasl.login.refresh.window.factor DOUBLE 0.8 per-broker inert:sasl
    Share of a credential's life after which it is renewed.
sasl.login.refresh.window.jitter DOUBLE 0.05 per-broker inert:sasl
    Share of a credential's life that is added at random.
sasl.login.retry.backoff.max.ms LONG 10000 inert:sasl
    Longest wait before another attempt to log in, in ms.
sasl.login.retry.backoff.ms LONG 100 inert:sasl
    First wait before another attempt to log in, in ms.
sasl.mechanism.controller.protocol STRING GSSAPI inert:sasl
    SASL mechanism towards controllers.
sasl.mechanism.inter.broker.protocol STRING GSSAPI per-broker inert:sasl
    SASL mechanism between brokers.
sasl.oauthbearer.assertion.algorithm STRING RS256 any-case:ES256,RS256 inert:sasl
    Algorithm that signs JWT assertions.
sasl.oauthbearer.assertion.claim.aud STRING - inert:sasl
    The aud claim of a JWT assertion.
sasl.oauthbearer.assertion.claim.exp.seconds INT 300 0..86400 inert:sasl
    How long a JWT assertion is valid, in seconds.
sasl.oauthbearer.assertion.claim.iss STRING - inert:sasl
    The iss claim of a JWT assertion.
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN false inert:sasl
    Whether a JWT assertion has a jti claim.
sasl.oauthbearer.assertion.claim.nbf.seconds INT 60 0..3600 inert:sasl
    How long before its making a JWT assertion is valid, in seconds.
sasl.oauthbearer.assertion.claim.sub STRING - inert:sasl
    The sub claim of a JWT assertion.
sasl.oauthbearer.assertion.file STRING - inert:sasl
    File with a ready JWT assertion.
sasl.oauthbearer.assertion.private.key.file STRING - inert:sasl
    File of the key that signs JWT assertions.
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD - inert:sasl
    Passphrase of that key.
sasl.oauthbearer.assertion.template.file STRING - inert:sasl
    File with further headers and claims of JWT assertions.
sasl.oauthbearer.client.credentials.client.id STRING - inert:sasl
    Client id at the identity provider.
sasl.oauthbearer.client.credentials.client.secret PASSWORD - inert:sasl
    Client secret at the identity provider.
sasl.oauthbearer.clock.skew.seconds INT 30 inert:sasl
    How far clocks may differ from the identity provider's, in seconds.
sasl.oauthbearer.expected.audience LIST "" inert:sasl
    Audiences of which a token must name one.
sasl.oauthbearer.expected.issuer STRING - inert:sasl
    Issuer that a token must name.
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG 3600000 inert:sasl
    How often the provider's keys are fetched, in ms.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG 10000 inert:sasl
    Longest wait before the keys are fetched again after a failure, in ms.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG 100 inert:sasl
    First wait before the keys are fetched again after a failure, in ms.
sasl.oauthbearer.jwks.endpoint.url STRING - inert:sasl
    Where the provider's keys are.
sasl.oauthbearer.jwt.retriever.class CLASS \
org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever inert:sasl
    Class that fetches tokens.
sasl.oauthbearer.jwt.validator.class CLASS \
org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator inert:sasl
    Class that checks tokens.
sasl.oauthbearer.scope STRING - inert:sasl
    Scope that is asked for.
sasl.oauthbearer.scope.claim.name STRING scope inert:sasl
    Claim that holds the scope.
sasl.oauthbearer.sub.claim.name STRING sub inert:sasl
    Claim that holds the subject.
sasl.oauthbearer.token.endpoint.url STRING - inert:sasl
    Where tokens are fetched.
sasl.server.callback.handler.class CLASS - inert:sasl
    Class that answers callbacks of the SASL server.
sasl.server.max.receive.size INT 524288 inert:sasl
    Largest message of an authentication, in bytes.
security.providers STRING - inert:tls
    Classes that provide security algorithms.
ssl.allow.dn.changes BOOLEAN false inert:tls
    Whether a new certificate may have another distinguished name.
ssl.allow.san.changes BOOLEAN false inert:tls
    Whether a new certificate may have other alternative names.
ssl.cipher.suites LIST "" per-broker inert:tls
    Cipher suites that are offered; empty for all.
ssl.client.auth STRING none one-of:required,requested,none per-broker inert:tls
    Whether clients must show a certificate.
ssl.enabled.protocols LIST TLSv1.2,TLSv1.3 per-broker inert:tls
    TLS versions that are offered.
ssl.endpoint.identification.algorithm STRING https per-broker inert:tls
    How the server's name is checked against its certificate.
ssl.engine.factory.class CLASS - per-broker inert:tls
    Class that makes TLS engines.
ssl.key.password PASSWORD - per-broker inert:tls
    Password of the private key.
ssl.keymanager.algorithm STRING SunX509 per-broker inert:tls
    Algorithm of the key manager.
ssl.keystore.certificate.chain PASSWORD - per-broker inert:tls
    Certificates that this broker shows.
ssl.keystore.key PASSWORD - per-broker inert:tls
    Private key of this broker.
ssl.keystore.location STRING - per-broker inert:tls
    File of the key store.
ssl.keystore.password PASSWORD - per-broker inert:tls
    Password of the key store.
ssl.keystore.type STRING JKS per-broker inert:tls
    Format of the key store.
ssl.principal.mapping.rules STRING DEFAULT inert:tls
    Rules that shorten distinguished names to names.
ssl.protocol STRING TLSv1.3 per-broker inert:tls
    TLS version that contexts are made for.
ssl.provider STRING - per-broker inert:tls
    Provider of TLS.
ssl.secure.random.implementation STRING - per-broker inert:tls
    Source of random numbers for TLS.
ssl.trustmanager.algorithm STRING PKIX per-broker inert:tls
    Algorithm of the trust manager.
ssl.truststore.certificates PASSWORD - per-broker inert:tls
    Certificates that this broker trusts.
ssl.truststore.location STRING - per-broker inert:tls
    File of the trust store.
ssl.truststore.password PASSWORD - per-broker inert:tls
    Password of the trust store.
ssl.truststore.type STRING JKS per-broker inert:tls
    Format of the trust store.
"""
