// SPDX-License-Identifier: GPL-3.0-or-later
// API keys in the keychain, with a keychain made for the test.
#include "tests/patience.h"
#include "tests/ui/common/uitest.h"
#include "ui/keys/keyring.h"
#include "ui/keys/keysdialog.h"

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScopeGuard>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>

#include <future>
#include <map>

using namespace klineage;
using namespace klineage::ui;

namespace {

const std::string secret = "sk-ant-very-secret-1234567890";

/// Answers later, as a keychain does; or not at all.
class FakeStore final : public KeyStore
{
public:
    struct State {
        std::map<std::string, std::string> entries;
        QString broken; ///< why nothing works
        bool silent = false;
        int reads = 0;
    };

    explicit FakeStore(State &state)
        : m_state(state)
    {}

    void read(const std::string &entry, const Got &got) override
    {
        ++m_state.reads;
        answer([this, entry, got] {
            if (const Status works = check(); !works)
                return got(tl::unexpected(works.error()));
            const auto found = m_state.entries.find(entry);
            got(found == m_state.entries.end() ? std::string() : found->second);
        });
    }
    void write(const std::string &entry, const std::string &value, const Done &done) override
    {
        answer([this, entry, value, done] {
            const Status works = check();
            if (works)
                m_state.entries[entry] = value;
            done(works);
        });
    }
    void remove(const std::string &entry, const Done &done) override
    {
        answer([this, entry, done] {
            const Status works = check();
            if (works)
                m_state.entries.erase(entry);
            done(works);
        });
    }

private:
    [[nodiscard]] Status check() const
    {
        return m_state.broken.isEmpty() ? Status()
                                        : fail(ErrorCode::Unavailable, m_state.broken.toStdString());
    }
    void answer(const std::function<void()> &act)
    {
        if (!m_state.silent)
            QTimer::singleShot(0, &m_context, act);
    }

    State &m_state;
    QObject m_context;
};

run::Settings settingsWith(const std::string &baseUrl)
{
    run::Settings settings;
    settings.provider = "anthropic";
    if (!baseUrl.empty())
        settings.author["base_url"] = baseUrl;
    return settings;
}

} // namespace

class TestKeys : public UiTest
{
    Q_OBJECT

private slots:
    void theDialogStoresAndRemoves()
    {
        FakeStore::State state;
        state.entries["openai"] = secret;
        KeyRing ring(std::make_unique<FakeStore>(state));
        KeysDialog dialog(&ring);
        QCOMPARE(dialog.rows().size(), std::size_t(2));
        const KeysDialog::Row &anthropic = dialog.rows()[0];
        const KeysDialog::Row &openai = dialog.rows()[1];
        QCOMPARE(anthropic.provider, QStringLiteral("anthropic"));
        QTRY_COMPARE(ring.state("openai"), KeyState::Stored);
        QTRY_COMPARE(ring.state("anthropic"), KeyState::Absent);
        QVERIFY(openai.remove->isEnabled());
        QVERIFY(!anthropic.remove->isEnabled());
        QVERIFY(!anthropic.store->isEnabled());

        QTest::keyClicks(anthropic.field, QString::fromStdString(secret));
        QCOMPARE(anthropic.field->echoMode(), QLineEdit::Password);
        QVERIFY(anthropic.store->isEnabled());
        QTest::mouseClick(anthropic.store, Qt::LeftButton);
        QVERIFY(anthropic.field->text().isEmpty());
        QVERIFY(!anthropic.field->isUndoAvailable());
        QTRY_COMPARE(ring.state("anthropic"), KeyState::Stored);
        QCOMPARE(state.entries["anthropic"], secret);
        QTest::mouseClick(openai.remove, Qt::LeftButton);
        QTRY_COMPARE(ring.state("openai"), KeyState::Absent);
        QVERIFY(state.entries.count("openai") == 0);
        QVERIFY(!shows(dialog, QString::fromStdString(secret)));
    }

    void whatIsNoKeyIsRefusedWithoutRepeatingIt()
    {
        FakeStore::State state;
        KeyRing ring(std::make_unique<FakeStore>(state));
        KeysDialog dialog(&ring);
        const KeysDialog::Row &row = dialog.rows()[0];
        QTRY_COMPARE(ring.state(row.provider), KeyState::Absent);
        row.field->setText(QStringLiteral("two words"));
        QTest::keyClick(row.field, Qt::Key_Return);
        QVERIFY2(dialog.note()->text().contains("characters that no key has"),
                 qPrintable(dialog.note()->text()));
        QVERIFY(!shows(dialog, QStringLiteral("two words")));
        QVERIFY(state.entries.empty());
        QVERIFY(!ring.store(row.provider, QStringLiteral("  ")).isEmpty());
    }

    void withoutAKeychainTheEnvironmentIsNamed()
    {
        const auto restore = qScopeGuard([before = qgetenv("ANTHROPIC_API_KEY")] {
            before.isNull() ? qunsetenv("ANTHROPIC_API_KEY") : qputenv("ANTHROPIC_API_KEY", before);
        });
        qputenv("ANTHROPIC_API_KEY", secret.c_str());
        FakeStore::State state;
        state.broken = QStringLiteral("There is no keychain on this desktop.");
        KeyRing ring(std::make_unique<FakeStore>(state));
        KeysDialog dialog(&ring);
        QTRY_COMPARE(ring.state("anthropic"), KeyState::Unavailable);
        QVERIFY(dialog.note()->text().contains(state.broken));
        QVERIFY(dialog.note()->text().contains(QLatin1String("from the environment alone")));
        QVERIFY(!dialog.rows()[0].field->isEnabled());
        QVERIFY(dialog.rows()[0].state->text().contains(QLatin1String("ANTHROPIC_API_KEY")));
        QVERIFY(ring.originText("anthropic").contains(QLatin1String("from the environment")));
        QVERIFY(!shows(dialog, QString::fromStdString(secret)));
        qunsetenv("ANTHROPIC_API_KEY");
        QVERIFY(ring.originText("anthropic").contains(QLatin1String("no key")));
        // The run goes on without the keychain: what the callback gives is empty, and findKey() asks the environment.
        QCOMPARE(askOnAThread(ring.callback(settingsWith({}), {})), std::string());
    }

    void aRunIsGivenTheKey()
    {
        FakeStore::State state;
        state.entries["anthropic"] = secret;
        KeyRing ring(std::make_unique<FakeStore>(state));
        QCOMPARE(askOnAThread(ring.callback(settingsWith({}), {})), secret);
        QCOMPARE(askOnAThread(ring.callback(settingsWith("https://models.example.com/v1"), {})), secret);
        QCOMPARE(state.reads, 2);
    }

    void serversOnThisMachineAreGivenNone_data()
    {
        QTest::addColumn<QString>("url");
        for (const char *url :
             {"http://127.0.0.1:8000/v1", "http://localhost:8000", "https://localhost", "https://[::1]:8443",
              "https://127.1.2.3/v1", "http://models.example.com", "nonsense"})
            QTest::newRow(url) << url;
    }
    void serversOnThisMachineAreGivenNone()
    {
        QFETCH(QString, url);
        FakeStore::State state;
        KeyRing ring(std::make_unique<FakeStore>(state));
        QVERIFY(!ring.callback(settingsWith(url.toStdString()), {}));
    }

    void aStopEndsTheWait()
    {
        FakeStore::State state;
        state.silent = true;
        KeyRing ring(std::make_unique<FakeStore>(state));
        std::stop_source stop;
        QTimer::singleShot(50, this, [&stop] { stop.request_stop(); });
        QCOMPARE(askOnAThread(ring.callback(settingsWith({}), stop.get_token())), std::string());
        QCOMPARE(state.reads, 1);
    }

    void theWindowsEndEndsTheWait()
    {
        FakeStore::State state;
        state.silent = true;
        auto ring = std::make_unique<KeyRing>(std::make_unique<FakeStore>(state));
        const llm::KeyCallback callback = ring->callback(settingsWith({}), {});
        auto key = std::async(std::launch::async, [&callback] { return callback("anthropic"); });
        QTRY_COMPARE(state.reads, 1);
        ring.reset();
        QCOMPARE(key.get(), std::string());
        QCOMPARE(callback("anthropic"), std::string());
    }

private:
    static bool shows(const QWidget &widget, const QString &text)
    {
        for (const QLabel *label : widget.findChildren<QLabel *>()) {
            if (label->text().contains(text) || label->toolTip().contains(text))
                return true;
        }
        for (const QLineEdit *line : widget.findChildren<QLineEdit *>()) {
            if (line->displayText().contains(text) || line->text().contains(text))
                return true;
        }
        return false;
    }

    static std::string askOnAThread(const llm::KeyCallback &callback)
    {
        auto key = std::async(std::launch::async, [&callback] { return callback("anthropic"); });
        while (key.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
            QCoreApplication::processEvents();
        return key.get();
    }
};

KLINEAGE_UI_TEST(TestKeys)
#include "tst_keys.moc"
