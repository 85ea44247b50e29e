// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/journal.h"

#include <QObject>

class QComboBox;
class QDoubleSpinBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QWidget;

namespace klineage::ui {

class KeyRing;

/// Who is asked, and for how much at most: the rows of an author at the end of a form. Only those that it has are there.
class AuthorRows : public QObject
{
    Q_OBJECT

public:
    struct Usual {
        QString manual;      ///< what the author "manual" is here
        QString provider;    ///< that is chosen at first
        double capDollars{}; ///< at first
    };
    /// keys is not owned, and may be nullptr: keys then come from the environment.
    AuthorRows(QFormLayout *form, KeyRing *keys, const Usual &usual);

    /// Of Settings: provider, model, author (empty values left out) and capDollars.
    [[nodiscard]] run::Settings author() const;
    void setAuthor(const run::Settings &settings);
    /// What is missing, a sentence; empty: it can be asked.
    [[nodiscard]] QString problem() const;
    void setFocus();

signals:
    void changed();

private:
    void fill(const Usual &usual);
    void showFields();
    void changeKeys();

    KeyRing *m_keys;
    QFormLayout *m_form;
    QComboBox *m_provider;
    QLineEdit *m_model;
    QLineEdit *m_baseUrl;
    QWidget *m_keyRow;
    QLabel *m_key;
    QLineEdit *m_command;
    QLineEdit *m_transcript;
    QDoubleSpinBox *m_cap;
};

} // namespace klineage::ui
