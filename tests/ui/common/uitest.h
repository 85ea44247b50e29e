// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QStringList>

namespace klineage::ui {

/// Base of tests of the window: a warning of Qt fails the function in which it was said.
class UiTest : public QObject
{
    Q_OBJECT

protected:
    /// Takes an expected warning out of the account; fails the function when it was not said.
    void expectWarning(const QString &part);
    /// What init() and cleanup() do: a test that has its own calls these first and last.
    void beginWatching();
    void endWatching();

private slots:
    void init() { beginWatching(); }
    void cleanup() { endWatching(); }

private:
    QStringList m_expected;
};

/// Offscreen platform, theme, fonts and an own configuration folder; then runs the test.
int runUiTest(int argc, char *argv[], QObject *(*make)());

} // namespace klineage::ui

#define KLINEAGE_UI_TEST(Class) \
    int main(int argc, char *argv[]) \
    { \
        return klineage::ui::runUiTest(argc, argv, []() -> QObject * { return new Class; }); \
    }
