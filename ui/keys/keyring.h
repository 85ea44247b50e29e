// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/network/secrets.h"
#include "core/run/journal.h"
#include "ui/keys/keystore.h"

#include <QObject>
#include <QString>
#include <QStringList>

#include <memory>

namespace klineage::ui {

/// What is known of a provider's key in the keychain.
enum class KeyState { Unknown, Asking, Stored, Absent, Unavailable };

/// The API keys of the providers in the desktop's keychain: whether they are there, set, removed, and given to a run. A key is never kept
/// here, shown or written anywhere else. Lives on the GUI thread.
class KeyRing : public QObject
{
    Q_OBJECT

public:
    explicit KeyRing(std::unique_ptr<KeyStore> store, QObject *parent = nullptr);
    ~KeyRing() override; ///< runs that wait for a key go on without one

    [[nodiscard]] static QStringList providers(); ///< those that need a key
    [[nodiscard]] static QString variable(const QString &provider);
    [[nodiscard]] static bool isInEnvironment(const QString &provider);

    [[nodiscard]] KeyState state(const QString &provider) const;
    /// Why the keychain did not do what it was asked for last; empty: it did.
    [[nodiscard]] QString problem() const;
    /// One sentence: where the provider's key comes from, or how to give one.
    [[nodiscard]] QString originText(const QString &provider) const;

    /// Asks the keychain, which may have to be unlocked; changed() follows.
    void look(const QString &provider);
    /// Why the text cannot be a key; empty when it is on its way into the keychain.
    QString store(const QString &provider, const QString &key);
    void remove(const QString &provider);

    /// For a run's thread: the key from the keychain, or an empty text when there is none, the stop was requested, or the keychain does
    /// not answer; the environment is asked then. Empty for servers on this machine, which others could stand in for.
    [[nodiscard]] llm::KeyCallback callback(const run::Settings &settings, std::stop_token stop);

signals:
    void changed(const QString &provider);

private:
    struct Private;
    std::unique_ptr<Private> m_d;
};

} // namespace klineage::ui
