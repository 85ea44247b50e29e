// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/keys/keyring.h"

#include "core/llm/makeprovider.h"

#include <QMap>
#include <QUrl>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace klineage::ui {

namespace {

constexpr std::chrono::minutes longestWait(2); ///< a person may have to unlock the keychain

/// What a run's thread and the window share while a key is asked for; it outlives both.
struct Counter {
    std::mutex mutex;
    std::condition_variable_any answered;
    KeyRing *ring = nullptr; ///< nullptr: it is closed
};

struct Answer {
    bool isThere = false;
    std::string key;
};

QString problemText(const Error &error)
{
    QString text = QString::fromStdString(error.message);
    if (error.detail.empty())
        return text;
    if (text.endsWith(QLatin1Char('.')))
        text.chop(1);
    return QStringLiteral("%1 (%2).").arg(text, QString::fromStdString(error.detail));
}

/// Whether the settings' server is somebody else's machine, spoken to over TLS.
bool isElsewhere(const run::Settings &settings)
{
    const auto found = settings.author.find("base_url");
    if (found == settings.author.end() || found->second.empty())
        return true;
    const QUrl url(QString::fromStdString(found->second));
    const QString host = url.host();
    return url.scheme() == QLatin1String("https") && host != QLatin1String("localhost")
           && !host.startsWith(QLatin1String("127.")) && host != QLatin1String("::1");
}

} // namespace

struct KeyRing::Private {
    std::unique_ptr<KeyStore> store;
    std::shared_ptr<Counter> counter = std::make_shared<Counter>();
    QMap<QString, KeyState> states;
    QString problem;
};

KeyRing::KeyRing(std::unique_ptr<KeyStore> store, QObject *parent)
    : QObject(parent)
    , m_d(std::make_unique<Private>())
{
    m_d->store = std::move(store);
    m_d->counter->ring = this;
}

KeyRing::~KeyRing()
{
    {
        const std::lock_guard lock(m_d->counter->mutex);
        m_d->counter->ring = nullptr;
    }
    m_d->counter->answered.notify_all();
}

QStringList KeyRing::providers()
{
    QStringList names;
    for (const std::string &name : llm::providerNames()) {
        if (llm::needsModel(name))
            names << QString::fromStdString(name);
    }
    return names;
}

QString KeyRing::variable(const QString &provider)
{
    return QString::fromLatin1(llm::keyVariable(provider.toStdString(), false));
}

bool KeyRing::isInEnvironment(const QString &provider)
{
    return !qEnvironmentVariableIsEmpty(variable(provider).toLatin1().constData());
}

KeyState KeyRing::state(const QString &provider) const
{
    return m_d->states.value(provider, KeyState::Unknown);
}

QString KeyRing::problem() const
{
    return m_d->problem;
}

QString KeyRing::originText(const QString &provider) const
{
    const KeyState known = state(provider);
    if (known == KeyState::Stored)
        return tr("The key is in the keychain.");
    if (known == KeyState::Asking)
        return tr("The keychain is asked for the key.");
    if (isInEnvironment(provider))
        return tr("The key is taken from the environment: %1.").arg(variable(provider));
    return known == KeyState::Unavailable
               ? tr("There is no key: no keychain answers, and %1 is not set.").arg(variable(provider))
               : tr("There is no key yet: store one in the keychain, or set %1.").arg(variable(provider));
}

void KeyRing::look(const QString &provider)
{
    m_d->states[provider] = KeyState::Asking;
    m_d->store->read(provider.toStdString(), [this, provider](const Result<std::string> &secret) {
        m_d->problem = secret ? QString() : problemText(secret.error());
        m_d->states[provider] = !secret           ? KeyState::Unavailable
                                : secret->empty() ? KeyState::Absent
                                                  : KeyState::Stored;
        emit changed(provider);
    });
    emit changed(provider);
}

QString KeyRing::store(const QString &provider, const QString &key)
{
    const std::string secret = key.trimmed().toStdString();
    if (secret.empty())
        return tr("There is no key to store.");
    const Result<std::string> sound =
        llm::findKey(provider.toStdString(), false, [&](std::string_view) { return secret; });
    if (!sound)
        return QString::fromStdString(sound.error().message);
    m_d->store->write(provider.toStdString(), secret, [this, provider](const Status &done) {
        m_d->problem = done ? QString() : problemText(done.error());
        if (done)
            m_d->states[provider] = KeyState::Stored;
        emit changed(provider);
    });
    return {};
}

void KeyRing::remove(const QString &provider)
{
    m_d->store->remove(provider.toStdString(), [this, provider](const Status &done) {
        m_d->problem = done ? QString() : problemText(done.error());
        if (done)
            m_d->states[provider] = KeyState::Absent;
        emit changed(provider);
    });
}

llm::KeyCallback KeyRing::callback(const run::Settings &settings, std::stop_token stop)
{
    if (!isElsewhere(settings))
        return {};
    return [counter = m_d->counter, stop = std::move(stop)](std::string_view provider) {
        const auto answer = std::make_shared<Answer>();
        std::unique_lock lock(counter->mutex);
        // The window's end takes the same lock first, so that what is posted here is posted to a living object.
        if (!counter->ring)
            return std::string();
        KeyRing *ring = counter->ring;
        QMetaObject::invokeMethod(
            ring,
            [ring, counter, answer, name = std::string(provider)] {
                ring->m_d->store->read(name, [counter, answer](const Result<std::string> &secret) {
                    {
                        const std::lock_guard inner(counter->mutex);
                        answer->isThere = true;
                        answer->key = secret.value_or(std::string());
                    }
                    counter->answered.notify_all();
                });
            },
            Qt::QueuedConnection);
        counter->answered.wait_for(lock, stop, longestWait,
                                   [&] { return answer->isThere || !counter->ring; });
        return std::move(answer->key);
    };
}

} // namespace klineage::ui
