// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/common/uitest.h"

#include "ui/style/theme.h"

#include <QApplication>
#include <QMutex>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <memory>

namespace klineage::ui {

namespace {

QMutex warningsMutex;
QStringList warnings;
QtMessageHandler previousHandler = nullptr;

/// What the offscreen platform says about itself is no fault of the window.
bool isHarmless(const QString &message)
{
    return message.startsWith(QLatin1String("This plugin does not support"))
           || message.contains(QLatin1String("XDG_RUNTIME_DIR"));
}

void recordWarning(QtMsgType type, const QMessageLogContext &context, const QString &message)
{
    if (type != QtDebugMsg && type != QtInfoMsg && !isHarmless(message)) {
        const QMutexLocker lock(&warningsMutex);
        warnings << message;
    }
    if (previousHandler)
        previousHandler(type, context, message);
}

QStringList takeWarnings()
{
    const QMutexLocker lock(&warningsMutex);
    return std::exchange(warnings, {});
}

} // namespace

void UiTest::expectWarning(const QString &part)
{
    m_expected << part;
}

void UiTest::beginWatching()
{
    m_expected.clear();
    (void)takeWarnings();
    previousHandler = qInstallMessageHandler(recordWarning);
}

void UiTest::endWatching()
{
    qInstallMessageHandler(previousHandler);
    QStringList said = takeWarnings();
    for (const QString &part : std::as_const(m_expected)) {
        const auto found = std::find_if(said.begin(), said.end(),
                                        [&part](const QString &message) { return message.contains(part); });
        QVERIFY2(found != said.end(), qPrintable(QStringLiteral("not said: ") + part));
        said.erase(found);
    }
    QVERIFY2(said.isEmpty(), qPrintable(said.join(QLatin1Char('\n'))));
}

int runUiTest(int argc, char *argv[], QObject *(*make)())
{
    const QTemporaryDir home;
    qputenv("XDG_CONFIG_HOME", home.filePath(QStringLiteral("config")).toLocal8Bit());
    qputenv("XDG_DATA_HOME", home.filePath(QStringLiteral("data")).toLocal8Bit());
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    Theme::apply(application, ThemeChoice::Light);
    const std::unique_ptr<QObject> test(make());
    return QTest::qExec(test.get(), argc, argv);
}

} // namespace klineage::ui
