// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/keys/keystore.h"

#include "core/llm/network/secrets.h"

#include <QCoreApplication>
#include <QObject>

#if KLINEAGE_HAVE_KEYCHAIN
#include <qt6keychain/keychain.h>
#endif

namespace klineage::ui {

namespace {

std::string storeText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::KeyStore", text).toStdString();
}

#if KLINEAGE_HAVE_KEYCHAIN

/// The keychain's own folder for this program's entries.
QString serviceName()
{
    return QStringLiteral("klineage");
}

Error errorOf(const QKeychain::Job &job, const std::string &secret)
{
    Error error{ErrorCode::Unavailable, {}, job.errorString().toStdString()};
    switch (job.error()) {
    case QKeychain::AccessDenied:
    case QKeychain::AccessDeniedByUser:
        error.message = storeText("The keychain of this desktop was not opened.");
        break;
    case QKeychain::CouldNotDeleteEntry:
        error.message = storeText("The keychain did not remove the key.");
        break;
    default:
        error.message = storeText("There is no keychain on this desktop, or it does not answer.");
    }
    return llm::scrubbed(error, secret);
}

class DesktopKeyStore final : public KeyStore
{
public:
    void read(const std::string &entry, const Got &got) override
    {
        auto *job = new QKeychain::ReadPasswordJob(serviceName());
        start(job, entry, [job, got] {
            if (job->error() == QKeychain::NoError)
                got(job->textData().toStdString());
            else if (job->error() == QKeychain::EntryNotFound)
                got(std::string());
            else
                got(tl::unexpected(errorOf(*job, {})));
        });
    }

    void write(const std::string &entry, const std::string &secret, const Done &done) override
    {
        auto *job = new QKeychain::WritePasswordJob(serviceName());
        job->setTextData(QString::fromStdString(secret));
        start(job, entry, [job, secret, done] {
            done(job->error() == QKeychain::NoError ? Status() : tl::unexpected(errorOf(*job, secret)));
        });
    }

    void remove(const std::string &entry, const Done &done) override
    {
        auto *job = new QKeychain::DeletePasswordJob(serviceName());
        start(job, entry, [job, done] {
            const bool gone = job->error() == QKeychain::NoError || job->error() == QKeychain::EntryNotFound;
            done(gone ? Status() : tl::unexpected(errorOf(*job, {})));
        });
    }

private:
    /// The job deletes itself when it is over; this object's end only cuts the answer off.
    template <typename Answer>
    void start(QKeychain::Job *job, const std::string &entry, const Answer &answer)
    {
        job->setInsecureFallback(false); // never into a plain file
        job->setKey(QString::fromStdString(entry));
        QObject::connect(job, &QKeychain::Job::finished, &m_context, answer);
        job->start();
    }

    QObject m_context;
};

#else

class DesktopKeyStore final : public KeyStore
{
public:
    void read(const std::string &, const Got &got) override { got(tl::unexpected(absent())); }
    void write(const std::string &, const std::string &, const Done &done) override
    {
        done(tl::unexpected(absent()));
    }
    void remove(const std::string &, const Done &done) override { done(tl::unexpected(absent())); }

private:
    static Error absent()
    {
        return {ErrorCode::Unavailable, storeText("This program was built without a keychain."),
                storeText("qtkeychain-qt6-dev was not there")};
    }
};

#endif

} // namespace

std::unique_ptr<KeyStore> makeDesktopKeyStore()
{
    return std::make_unique<DesktopKeyStore>();
}

} // namespace klineage::ui
